#include "rendezvous/io/listener.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "rendezvous/io/door.h"
#include "rendezvous/io/port_owner.h"

namespace ddp::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

Error cannot_listen(const Endpoint& endpoint, const tcp::endpoint& at, const error_code& why) {
  std::string text = "cannot listen on " + text_of(endpoint) + ": ";
  if (why == asio::error::address_in_use) {
    const auto owner = port_owner(at);
    text += owner ? "in use by " + *owner : "address already in use";
    text += "; stop what listens there or choose another port (0: a free one)";
  } else if (why.value() == EADDRNOTAVAIL) {
    text += "this host has no such address; give one of its own";
  } else if (why == asio::error::access_denied) {
    text += "permission denied; choose a port of 1024 or more";
  } else {
    text += why.message();
  }
  return Error{text};
}

std::optional<Error> open_within(const PortRange& range, const asio::ip::address& address,
                                 const std::string& host, Door& door) {
  std::random_device draw;
  for (FreshPorts ports(range, draw()); ports.left();) {
    const Endpoint endpoint{host, ports.take()};
    const tcp::endpoint at(address, endpoint.port.value);
    const error_code error = door.open(at, endpoint);
    if (!error) return std::nullopt;
    // Below 1024 some may be ours to take and others not.
    if (error != asio::error::address_in_use && error != asio::error::access_denied) {
      return cannot_listen(endpoint, at, error);
    }
  }
  return Error{"cannot listen on any port of " + host + " from " + std::to_string(range.low.value) +
               " to " + std::to_string(range.high.value) +
               ": all are in use or not permitted; stop what listens there or give a wider range"};
}

}  // namespace

Result<asio::ip::address> resolve_address(const std::string& host) {
  error_code error;
  const auto literal = asio::ip::make_address(host, error);
  if (!error && literal.is_v6() && literal.to_v6().is_v4_mapped()) {
    return asio::ip::address(asio::ip::make_address_v4(asio::ip::v4_mapped, literal.to_v6()));
  }
  if (!error) return literal;
  asio::io_context context;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty()) {
    return Error{"cannot resolve \"" + host +
                 "\": " + (error ? error.message() : "it has no address") +
                 "; check the name, or give an address"};
  }
  for (const auto& entry : found) {
    if (entry.endpoint().address().is_v4()) return entry.endpoint().address();
  }
  return found.begin()->endpoint().address();
}

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& context,
                                                 const Endpoint& endpoint, ListenerRoutes routes,
                                                 std::size_t limit,
                                                 const std::optional<PortRange>& fresh) {
  const auto address = resolve_address(endpoint.host);
  if (!address) return address.error();
  const auto door = std::make_shared<Door>(context, std::move(routes), limit);
  if (endpoint.port.value == 0 && fresh) {
    if (const auto trouble = open_within(*fresh, address.value(), endpoint.host, *door)) {
      return *trouble;
    }
  } else {
    const tcp::endpoint at(address.value(), endpoint.port.value);
    if (const error_code error = door->open(at, endpoint)) {
      return cannot_listen(endpoint, at, error);
    }
  }
  door->wait_for_connections();
  return std::make_unique<Listener>(Key{}, door);
}

std::size_t connections_within_limit_of_files(std::size_t reserve) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return Listener::kNoLimit;
  }
  const std::size_t files = limit.rlim_cur;
  return std::max({files - std::min(files, reserve), files / 4, std::size_t{1}});
}

Listener::Listener(Key, std::shared_ptr<Door> door) : door_(std::move(door)) {}
Listener::~Listener() {
  door_->close();
}

const Endpoint& Listener::endpoint() const {
  return door_->endpoint();
}
std::size_t Listener::undecided_connections() const {
  return door_->undecided();
}
void Listener::refuse_earlier_store_clients() {
  door_->refuse_earlier_store_clients();
}
void Listener::store_client_in_use(ConnectionId connection) {
  door_->store_client_in_use(connection);
}
void Listener::store_client_left(ConnectionId connection) {
  door_->store_client_left(connection);
}

}  // namespace ddp::rendezvous
