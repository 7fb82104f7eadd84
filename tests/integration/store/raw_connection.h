// A client's connection to a store that is read with a deadline and can be cut at any byte.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddp::store_test {

class RawConnection {
 public:
  // Throws std::runtime_error if the store can't be reached.
  explicit RawConnection(std::uint16_t port);
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  // False: the store has closed the connection.
  bool send(std::string_view bytes);
  // Nothing: the store has closed the connection. Throws if nothing comes for far too long.
  [[nodiscard]] std::optional<std::string> receive(std::size_t length);
  [[nodiscard]] std::optional<std::int64_t> receive_number();
  [[nodiscard]] std::optional<std::string> receive_bytes();
  // Whether there is something to be read, or the end, within that time.
  [[nodiscard]] bool readable_within(std::chrono::microseconds time);
  // Closes so that nothing unsent or unread is waited for.
  void cut();

 private:
  int socket_;
};

}  // namespace ddp::store_test
