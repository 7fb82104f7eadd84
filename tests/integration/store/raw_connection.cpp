#include "tests/integration/store/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <stdexcept>

#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::store_test {
namespace {

constexpr auto kFarTooLong = std::chrono::seconds(30);

}  // namespace

RawConnection::RawConnection(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    ::close(socket_);
    throw std::runtime_error("no connection to the store");
  }
}

RawConnection::~RawConnection() {
  if (socket_ >= 0) ::close(socket_);
}

bool RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<std::string> RawConnection::receive(std::size_t length) {
  std::string bytes(length, '\0');
  std::size_t have = 0;
  while (have < length) {
    if (!readable_within(kFarTooLong)) throw std::runtime_error("the store does not answer");
    const ssize_t got = ::recv(socket_, bytes.data() + have, length - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::optional<std::int64_t> RawConnection::receive_number() {
  const auto bytes = receive(sizeof(std::int64_t));
  if (!bytes) return std::nullopt;
  return rendezvous::read_i64(*bytes);
}

std::optional<std::string> RawConnection::receive_bytes() {
  const auto length = receive_number();
  if (!length) return std::nullopt;
  return receive(static_cast<std::size_t>(*length));
}

bool RawConnection::readable_within(std::chrono::microseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec timeout{seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
  pollfd waited{socket_, POLLIN, 0};
  return ::ppoll(&waited, 1, &timeout, nullptr) > 0;
}

void RawConnection::cut() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket_);
  socket_ = -1;
}

}  // namespace ddp::store_test
