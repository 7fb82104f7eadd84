#include "worker_sdk/io/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace ddp::sdk {
namespace {

constexpr Milliseconds kSlice{100};

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    throw ConnectionLost{"the name \"" + host + "\" has no address (" + ::gai_strerror(code) + ")"};
  }
  return {found, &::freeaddrinfo};
}

void set_option(const UniqueFd& socket, int level, int option, int value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof value);
}

// Empty: connected.
std::string connect_to(int socket, const addrinfo& address, const Deadline& deadline) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd entry{socket, POLLOUT, 0};
  for (;;) {
    const auto left = deadline.remaining();
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::min(left, Milliseconds(60'000)).count()));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return std::strerror(errno);
    if (deadline.passed()) throw ConnectionTimeout{};
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? std::string{} : std::strerror(error);
}

}  // namespace

Connection Connection::open(const std::string& host, std::uint16_t port, const Deadline& deadline) {
  const AddressList addresses = resolve(host, port);
  std::string reason = "no address";
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) {
      reason = std::strerror(errno);
      continue;
    }
    reason = connect_to(socket.get(), *address, deadline);
    if (!reason.empty()) continue;
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    // While this side only waits, nothing else finds out that the other host has lost its power.
    set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
    return Connection(std::move(socket));
  }
  throw ConnectionLost{reason};
}

void Connection::await(short events, const Deadline& deadline, const Watch& watch) const {
  pollfd entry{socket_.get(), events, 0};
  for (;;) {
    const auto slice = std::min(deadline.remaining(), kSlice);
    const int ready = ::poll(&entry, 1, static_cast<int>(slice.count()));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw ConnectionLost{std::strerror(errno)};
    if (watch) watch();
    if (deadline.passed()) throw ConnectionTimeout{};
  }
}

void Connection::send(std::string_view bytes, const Deadline& deadline, const Watch& watch) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      await(POLLOUT, deadline, watch);
    } else if (errno != EINTR) {
      throw ConnectionLost{std::strerror(errno)};
    }
  }
}

std::string Connection::receive(std::size_t size, const Deadline& deadline, const Watch& watch) {
  // Grown as the bytes come, never by what a length claims.
  constexpr std::size_t kPiece = 1U << 20;
  std::string bytes;
  while (bytes.size() < size) {
    const std::size_t had = bytes.size();
    bytes.resize(had + std::min(size - had, kPiece));
    const ssize_t got = ::recv(socket_.get(), bytes.data() + had, bytes.size() - had, 0);
    const int error = errno;
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) continue;
    if (got == 0) throw ConnectionLost{"it closed the connection"};
    if (error == EAGAIN || error == EWOULDBLOCK) {
      await(POLLIN, deadline, watch);
    } else if (error != EINTR) {
      throw ConnectionLost{std::strerror(error)};
    }
  }
  return bytes;
}

std::string Connection::local_address() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(&storage);
    ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
  } else if (storage.ss_family == AF_INET6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(&storage);
    ::inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof text);
  }
  const std::string_view mapped = "::ffff:";
  const std::string_view found = text;
  return std::string(found.substr(0, mapped.size()) == mapped &&
                             found.find('.') != std::string_view::npos
                         ? found.substr(mapped.size())
                         : found);
}

}  // namespace ddp::sdk
