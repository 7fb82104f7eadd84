// Plain sockets for a load generator: what goes wrong ends the program with a line that says it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/bench/store_load/requests.h"

namespace ddp::bench {

struct Target {
  std::uint16_t port = 0;  // on 127.0.0.1
  Dialect dialect = Dialect::current;
};

// What an echo server is to do with a connection's requests.
enum class EchoRole : std::uint32_t {
  answer = 0,
  park = 1,     // answered when one on a releasing connection comes
  release = 2,  // no answer of its own
};

[[noreturn]] void give_up(const std::string& what);

// Closes it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// TCP_NODELAY, non-blocking; the connection is begun.
Socket begin_connection(const Target& target);

// Blocks until it is connected and the server has answered the hello. `exchange` and `role` are
// what an echo server has to know beforehand.
Socket open_connection(const Target& target, const Exchange& exchange, EchoRole role);

void send_all(const Socket& socket, const std::string& bytes);
// Waits for that many bytes and drops them.
void receive(const Socket& socket, std::size_t size);

// Reads at most `left` bytes and drops them; how many they were, 0 if there are none now.
std::size_t receive_some(const Socket& socket, std::size_t left);

// Readiness of many sockets; each is known by the number that it was added with.
class Poller {
 public:
  Poller();
  void add_readable(const Socket& socket, std::uint64_t number);
  void add_writable(const Socket& socket, std::uint64_t number);
  void change_to_readable(const Socket& socket, std::uint64_t number);
  // Numbers of those that are ready; gives up after a minute of nothing.
  [[nodiscard]] const std::uint64_t* wait(int& count);

 private:
  void control(int operation, const Socket& socket, std::uint32_t events, std::uint64_t number);

  static constexpr int kMost = 512;
  Socket epoll_;
  std::uint64_t ready_[kMost];
};

}  // namespace ddp::bench
