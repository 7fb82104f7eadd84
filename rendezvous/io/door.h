// Accepts the connections of one port, carries those whose protocol isn't known yet, and sees to it
// that descriptors suffice.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "rendezvous/core/first_bytes.h"
#include "rendezvous/core/newcomers.h"
#include "rendezvous/core/time.h"
#include "rendezvous/io/listener.h"

namespace ddp::rendezvous {

// A descriptor that is only there to be given up when one is needed badly.
class SpareDescriptor {
 public:
  SpareDescriptor() { take(); }
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;
  ~SpareDescriptor() { give(); }
  void give();
  void take();

 private:
  int descriptor_ = -1;
};

// Shared with the handlers that are in flight.
class Door : public std::enable_shared_from_this<Door> {
 public:
  Door(boost::asio::io_context& context, ListenerRoutes routes, std::size_t limit);

  boost::system::error_code open(const boost::asio::ip::tcp::endpoint& at, Endpoint asked);
  void close();
  void wait_for_connections();

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] std::size_t undecided() const { return undecided_.size(); }
  void refuse_earlier_store_clients() { ++era_; }
  void store_client_in_use(ConnectionId connection);
  void store_client_left(ConnectionId connection);

 private:
  // A connection whose protocol is not known yet.
  class Undecided;

  [[nodiscard]] std::size_t connections() const { return undecided_.size() + store_clients_; }
  void accept_all();
  [[nodiscard]] bool somebody_waits() const;
  void welcome(int descriptor);
  void hand_over(Undecided& connection, Protocol protocol);
  void forget(ConnectionId connection);
  [[nodiscard]] bool make_room();
  void wait_for_room();
  void turn_away();

  boost::asio::io_context& context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  ListenerRoutes routes_;
  std::size_t limit_;
  boost::asio::ip::tcp protocol_ = boost::asio::ip::tcp::v4();
  Endpoint endpoint_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Undecided>> undecided_;
  std::size_t store_clients_ = 0;
  std::unordered_set<std::uint64_t> legacy_clients_;  // that have only greeted
  Newcomers newcomers_;
  SpareDescriptor spare_;
  std::optional<Instant> full_since_;
  std::uint64_t next_id_ = 0;
  std::uint64_t era_ = 0;
  bool pausing_ = false;
  bool has_warned_ = false;
  bool open_ = true;
};

}  // namespace ddp::rendezvous
