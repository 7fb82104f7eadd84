// The worker store of an agent: a TCPStore server with one empty map per round behind a port that
// may outlive rounds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/port_range.h"
#include "rendezvous/core/result.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {

struct WorkerStoreOptions {
  std::string address = "127.0.0.1";     // literal or name; "::" is all addresses, IPv4 included
  Port port;                             // 0: a fresh one
  std::optional<PortRange> fresh_ports;  // where that is taken; absent: anywhere
  StoreLimits limits;
  // What clients of PyTorch up to 2.1 are taken to speak, a or b: nothing in the first bytes says.
  StoreDialect legacy = StoreDialect::a;
  // How many connections may be open at once; as many as the limit of open files allows if that
  // is less by `reserved_files`, which the process needs for other things.
  std::size_t connections = std::numeric_limits<std::size_t>::max();
  std::size_t reserved_files = 32;
  std::function<void(const std::string&)> on_warning;
  // Takes the connections that speak the agent protocol on the same port; empty: they are closed.
  std::function<void(boost::asio::ip::tcp::socket, std::string already_read)> agent_acceptor;
};

class StoreRoom;
class Listener;

class WorkerStore {
  struct Key {};  // only open() can make one

 public:
  // `context` outlives the store, which is used from its thread only.
  [[nodiscard]] static Result<std::unique_ptr<WorkerStore>> open(boost::asio::io_context& context,
                                                                 const WorkerStoreOptions& options);
  WorkerStore(Key, const StoreLimits& limits);
  WorkerStore(const WorkerStore&) = delete;
  WorkerStore& operator=(const WorkerStore&) = delete;
  ~WorkerStore();  // closes the port and every TCPStore session; agents' connections are not ours

  // The address as it was asked for and the real port.
  [[nodiscard]] const Endpoint& endpoint() const;

  // A new round on the same port: TCPStore sessions are closed, and an empty map takes the place
  // of the old one. Agents' connections stay.
  void renew();

  // Shown to clients beside their own keys; `key` begins with kNoticePrefix (key_value_store.h).
  void set_notice(std::string_view key, std::string_view value);

  [[nodiscard]] std::size_t number_of_sessions() const;

 private:
  [[nodiscard]] std::shared_ptr<StoreRoom> new_room();

  StoreLimits limits_;
  std::shared_ptr<StoreRoom> room_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace ddp::rendezvous
