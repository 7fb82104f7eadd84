#include "launcher/io/coordination.h"

#include <boost/asio/post.hpp>
#include <boost/json/serialize.hpp>
#include <stdexcept>
#include <utility>

#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/message_json_fields.h"
#include "rendezvous/io/listener.h"
#include "rendezvous/io/local_link.h"
#include "rendezvous/io/remote_link.h"

namespace ddp::launcher {

using rendezvous::Endpoint;
using rendezvous::Error;
using rendezvous::Port;
using rendezvous::Result;
using rendezvous::WorkerStore;
using rendezvous::WorkerStoreOptions;

namespace {

constexpr Port kDefaultPort{29500};
// What the agent opens for itself, and for a worker: its pidfd, its ends of pipes, its logs.
constexpr std::size_t kFilesOfAgent = 32;
constexpr std::size_t kFilesPerWorker = 8;
constexpr const char* kAllAddresses = "::";
constexpr const char* kAllOldAddresses = "0.0.0.0";  // where IPv6 is switched off

// Where the workers of one node find the store: "all addresses" would let in the others.
boost::asio::ip::address address_for_this_host(const boost::asio::ip::address& address) {
  if (!address.is_unspecified()) return address;
  if (address.is_v6()) return boost::asio::ip::address_v6::loopback();
  return boost::asio::ip::address_v4::loopback();
}

Endpoint endpoint_of(const LaunchConfig& config) {
  return {config.master_addr, config.master_port.value_or(kDefaultPort)};
}

}  // namespace

Coordination::Coordination(boost::asio::io_context& context, const LaunchConfig& config,
                           std::uint64_t seed, Callbacks callbacks)
    : context_(context), config_(config), callbacks_(std::move(callbacks)) {
  if (several_nodes() && config_.node_rank != 0) {
    link_ = std::make_unique<rendezvous::RemoteLink>(context_, endpoint_of(config_), seed,
                                                     callbacks_.link);
    return;
  }
  rendezvous::CoordinatorHost::Options options;
  options.embedded = true;
  options.join_timeout = config_.join_timeout;
  options.seed = seed;
  options.on_note = callbacks_.link.on_note;
  options.on_refused = [this](const std::string& reason) {
    callbacks_.on_warning("a node was refused: " + reason);
  };
  host_ = std::make_unique<rendezvous::CoordinatorHost>(context_, std::move(options));
  if (several_nodes()) listen_for_all();
  link_ = std::make_unique<rendezvous::LocalLink>(context_, *host_, callbacks_.link);
}

void Coordination::listen_for_all() {
  const Endpoint endpoint = endpoint_of(config_);
  const auto address = rendezvous::resolve_address(endpoint.host);
  if (!address) throw std::runtime_error(address.error().message);
  boost::system::error_code not_literal;
  boost::asio::ip::make_address(endpoint.host, not_literal);
  const bool loopback = address.value().is_loopback();
  // A name that means this host to itself means something else to the others.
  const bool name_of_loopback = loopback && not_literal;

  WorkerStoreOptions options = store_options();
  options.port = endpoint.port;
  options.agent_acceptor = [host = host_.get()](boost::asio::ip::tcp::socket socket,
                                                std::string already_read) {
    host->accept(std::move(socket), std::move(already_read));
  };
  const auto open = [&](const std::string& where) {
    options.address = where;
    return WorkerStore::open(context_, options);
  };
  auto store = open(name_of_loopback ? kAllAddresses : address.value().to_string());
  const std::string refused = store ? "" : store.error().message;
  // Behind a service name or a translated address the endpoint is none of this host's.
  if (!store && !loopback) store = open(kAllAddresses);
  if (!store && (!loopback || name_of_loopback)) store = open(kAllOldAddresses);
  if (!store) throw std::runtime_error(refused);
  store_ = std::move(store).value();

  if (loopback && !name_of_loopback) return;
  std::string text = "this agent coordinates the job at " + text_of(endpoint) + ",";
  if (name_of_loopback || !refused.empty()) {
    text += " which is no address of this host that others can reach, so it listens on all,";
  }
  callbacks_.on_warning(text +
                        " without a token: whoever reaches the port can join; the job ends if this "
                        "agent does");
}

void Coordination::join(const rendezvous::NodeDescription& description) {
  link_->start(config_.run_id, description);
}

void Coordination::report(const rendezvous::NodeStatus& status) {
  link_->report(status);
}

WorkerStoreOptions Coordination::store_options() const {
  WorkerStoreOptions options;
  options.legacy = config_.legacy_store;
  options.fresh_ports = config_.port_range;
  options.on_warning = callbacks_.on_warning;
  // Whatever clients do, workers can be started and stopped.
  const auto workers = static_cast<std::size_t>(config_.workers);
  const auto nodes = static_cast<std::size_t>(config_.nodes.max);
  options.reserved_files = kFilesOfAgent + kFilesPerWorker * workers + nodes;
  return options;
}

Result<Endpoint> Coordination::open_store() {
  if (several_nodes()) {
    if (!store_) return Error{"this node is not the one that the job's endpoint names"};
    store_->renew();
    return endpoint_of(config_);
  }
  if (store_ && config_.master_port) {
    store_->renew();
  } else {
    const auto address = rendezvous::resolve_address(config_.master_addr);
    if (!address) return address.error();
    WorkerStoreOptions options = store_options();
    options.address = address_for_this_host(address.value()).to_string();
    options.port = config_.master_port.value_or(Port{0});
    auto store = WorkerStore::open(context_, options);
    if (!store) return store.error();
    const bool first = store_ == nullptr;
    store_ = std::move(store).value();
    if (first && !address_for_this_host(address.value()).is_loopback()) {
      callbacks_.on_warning("the worker store listens at " + text_of(store_->endpoint()) +
                            ", as --master-addr says, where other hosts may reach it: without a "
                            "token, whoever does can change every key");
    }
  }
  return Endpoint{config_.master_addr, store_->endpoint().port};
}

void Coordination::close_store() {
  if (!store_) return;
  if (several_nodes()) {
    store_->renew();  // Agents still come to this port.
  } else {
    store_.reset();
  }
}

void Coordination::publish(const rendezvous::Failure& failure) {
  if (!store_) return;
  store_->set_notice(rendezvous::kDeathNotice,
                     boost::json::serialize(rendezvous::message_json::write(failure)));
}

void Coordination::finish(std::function<void()> on_done) {
  if (host_ && several_nodes()) {
    link_.reset();  // the job must not wait for a node that has left
    host_->finish(std::move(on_done));
  } else {
    boost::asio::post(context_, std::move(on_done));
  }
}

}  // namespace ddp::launcher
