// One port for several protocols: accepts connections and hands each to the owner of the protocol
// that its first bytes name.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/newcomers.h"
#include "rendezvous/core/port_range.h"
#include "rendezvous/core/result.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {

// Where connections go. A protocol that has no function is off: its connections are closed. The
// socket is non-blocking, CLOEXEC and TCP_NODELAY; the string holds all that was read from it.
struct ListenerRoutes {
  std::function<void(boost::asio::ip::tcp::socket, StoreDialect, ConnectionId,
                     const std::string& already_read)>
      store;
  // There is no room: closes this one, which hasn't asked for anything yet. False: but now it has.
  std::function<bool(ConnectionId)> close_idle_store;
  std::function<void(boost::asio::ip::tcp::socket, std::string already_read)> agent;
  StoreDialect legacy = StoreDialect::a;  // what a legacy TCPStore client is taken to speak
  std::function<void(const std::string&)> on_warning;
};

// A literal address as it is, ::ffff:a.b.c.d as a.b.c.d; a name by a (blocking) lookup, IPv4
// preferred.
[[nodiscard]] Result<boost::asio::ip::address> resolve_address(const std::string& host);

// How many connections a process can carry that needs `reserve` descriptors for other things; at
// least a quarter of all that it may open.
[[nodiscard]] std::size_t connections_within_limit_of_files(std::size_t reserve);

class Door;

// Passive towards those who connect: a connection that sends nothing is kept, for every client of
// dialect A opens one such. Where there is no room for another, newcomers are closed (newcomers.h);
// if all are in use, whoever comes waits, and after a while is turned away.
class Listener {
  struct Key {};  // only open() can make one

 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  // Port 0: a fresh one, of `fresh` if that is given. "::" takes IPv4 too. `context` outlives the
  // listener. `limit`: of connections, those of agents not counted.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(
      boost::asio::io_context& context, const Endpoint& endpoint, ListenerRoutes routes,
      std::size_t limit = kNoLimit, const std::optional<PortRange>& fresh = {});
  Listener(Key, std::shared_ptr<Door> door);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();  // closes the port and the connections that are not handed over yet

  // The host as it was asked for, the port as it is.
  [[nodiscard]] const Endpoint& endpoint() const;
  [[nodiscard]] std::size_t undecided_connections() const;

  // Connections accepted so far that turn out to speak TCPStore are closed: they belong to a round
  // that is over.
  void refuse_earlier_store_clients();

  // Of a connection that was handed to routes.store: it has asked for something; it is closed.
  void store_client_in_use(ConnectionId connection);
  void store_client_left(ConnectionId connection);

 private:
  std::shared_ptr<Door> door_;
};

}  // namespace ddp::rendezvous
