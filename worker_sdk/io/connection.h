// A blocking TCP connection, every wait of which has an end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "worker_sdk/io/deadline.h"
#include "worker_sdk/io/unique_fd.h"

namespace ddp::sdk {

// Looked at about ten times a second while something waits; may throw to end the waiting.
using Watch = std::function<void()>;

// The other side is gone, or never was there. Not for users: whoever has the connection says what
// it means.
struct ConnectionLost {
  std::string reason;
};
struct ConnectionTimeout {};

class Connection {
 public:
  // One attempt at each address of the name. Throws ConnectionLost, ConnectionTimeout.
  static Connection open(const std::string& host, std::uint16_t port, const Deadline& deadline);

  // All or nothing (then the connection is of no more use). Throw ConnectionLost,
  // ConnectionTimeout, or what `watch` throws.
  void send(std::string_view bytes, const Deadline& deadline, const Watch& watch);
  [[nodiscard]] std::string receive(std::size_t size, const Deadline& deadline, const Watch& watch);

  // The literal address that this side has.
  [[nodiscard]] std::string local_address() const;

 private:
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}
  void await(short events, const Deadline& deadline, const Watch& watch) const;

  UniqueFd socket_;
};

}  // namespace ddp::sdk
