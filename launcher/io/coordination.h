// The agent's two ends of the network: the line to the job's coordinator, and the worker store.
// Either may live in this process.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "launcher/core/launch_config.h"
#include "rendezvous/core/result.h"
#include "rendezvous/io/coordinator_host.h"
#include "rendezvous/io/coordinator_link.h"
#include "rendezvous/io/worker_store.h"

namespace ddp::launcher {

// One node: coordinator in this process, no port but the worker store's, which is a fresh one each
// round unless the user fixed it. Several: node 0 listens on the job's endpoint, where workers
// (TCPStore protocol) and the other agents (agent protocol) come to the same port.
class Coordination {
 public:
  struct Callbacks {
    rendezvous::LinkCallbacks link;
    std::function<void(const std::string& text)> on_warning;
  };

  // Throws std::runtime_error, fit for people, if the endpoint can't be opened. `context` and
  // `config` outlive this.
  Coordination(boost::asio::io_context& context, const LaunchConfig& config, std::uint64_t seed,
               Callbacks callbacks);

  void join(const rendezvous::NodeDescription& description);
  void report(const rendezvous::NodeStatus& status);

  // See CoordinatorLink.
  [[nodiscard]] bool is_looking_up() const { return link_ && link_->is_looking_up(); }

  // A new, empty map; where workers reach it.
  [[nodiscard]] rendezvous::Result<rendezvous::Endpoint> open_store();
  void close_store();
  // Tells workers of a death, through the store if it is here.
  void publish(const rendezvous::Failure& failure);

  // This agent leaves the job, reports nothing more, and hears nothing. Calls `on_done` from the
  // loop when no other agent depends on this process any more.
  void finish(std::function<void()> on_done);

 private:
  [[nodiscard]] bool several_nodes() const { return config_.nodes.max > 1; }
  void listen_for_all();
  [[nodiscard]] rendezvous::WorkerStoreOptions store_options() const;

  boost::asio::io_context& context_;
  const LaunchConfig& config_;
  Callbacks callbacks_;
  std::unique_ptr<rendezvous::CoordinatorHost> host_;  // only where the coordinator lives
  std::unique_ptr<rendezvous::CoordinatorLink> link_;  // until finish()
  std::unique_ptr<rendezvous::WorkerStore> store_;
};

}  // namespace ddp::launcher
