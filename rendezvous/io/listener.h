// One port for several protocols: accepts connections and hands each to the owner of the protocol
// that its first bytes name.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/result.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {

// Where connections go. A protocol that has no function is off: its connections are closed. The
// socket is non-blocking, CLOEXEC and TCP_NODELAY; the string holds all that was read from it.
struct ListenerRoutes {
  std::function<void(boost::asio::ip::tcp::socket, StoreDialect, std::string already_read)> store;
  std::function<void(boost::asio::ip::tcp::socket, std::string already_read)> agent;
  StoreDialect legacy = StoreDialect::a;  // what a legacy TCPStore client is taken to speak
};

// A literal address as it is; a name by a (blocking) lookup, IPv4 preferred.
[[nodiscard]] Result<boost::asio::ip::address> resolve_address(const std::string& host);

// Passive towards those who connect: a connection that sends nothing is kept, for every client of
// dialect A opens one such.
class Listener {
  class Door;
  struct Key {};  // only open() can make one

 public:
  // Port 0: a fresh one. "::" takes IPv4 too. `context` outlives the listener.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> open(boost::asio::io_context& context,
                                                              const Endpoint& endpoint,
                                                              ListenerRoutes routes);
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

 private:
  std::shared_ptr<Door> door_;
};

}  // namespace ddp::rendezvous
