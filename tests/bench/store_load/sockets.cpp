#include "tests/bench/store_load/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>

namespace ddp::bench {
namespace {

constexpr int kPatienceMs = 60'000;

void wait_for(const Socket& socket, short events) {
  pollfd look{socket.get(), events, 0};
  if (poll(&look, 1, kPatienceMs) <= 0) give_up("nothing happened for a minute");
}

}  // namespace

void give_up(const std::string& what) {
  std::cerr << "store_load: " << what;
  if (errno != 0) std::cerr << ": " << std::strerror(errno);
  std::cerr << '\n';
  std::exit(1);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

Socket begin_connection(const Target& target) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0) give_up("socket");
  const int on = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(target.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    give_up("connect");
  }
  return made;
}

Socket open_connection(const Target& target, const Exchange& exchange, EchoRole role) {
  Socket made = begin_connection(target);
  wait_for(made, POLLOUT);
  if (target.dialect == Dialect::echo) {
    const std::uint32_t header[] = {static_cast<std::uint32_t>(exchange.request.size()),
                                    static_cast<std::uint32_t>(exchange.reply_size),
                                    static_cast<std::uint32_t>(role)};
    send_all(made, {reinterpret_cast<const char*>(header), sizeof(header)});
    return made;
  }
  const Exchange hello = Requests(target.dialect).hello();
  send_all(made, hello.request);
  receive(made, hello.reply_size);
  return made;
}

void send_all(const Socket& socket, const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count =
        send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      wait_for(socket, POLLOUT);
    } else {
      give_up("send");
    }
  }
}

std::size_t receive_some(const Socket& socket, std::size_t left) {
  std::array<char, 4096> bytes;
  const ssize_t count = recv(socket.get(), bytes.data(), std::min(left, bytes.size()), 0);
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && errno == EAGAIN) return 0;
  if (count == 0) errno = ECONNRESET;
  give_up("receive");
}

void receive(const Socket& socket, std::size_t size) {
  while (size > 0) {
    const std::size_t count = receive_some(socket, size);
    if (count == 0) wait_for(socket, POLLIN);
    size -= count;
  }
}

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_.get() < 0) give_up("epoll_create1");
}

void Poller::control(int operation, const Socket& socket, std::uint32_t events,
                     std::uint64_t number) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  if (epoll_ctl(epoll_.get(), operation, socket.get(), &event) != 0) give_up("epoll_ctl");
}

void Poller::add_readable(const Socket& socket, std::uint64_t number) {
  control(EPOLL_CTL_ADD, socket, EPOLLIN, number);
}

void Poller::add_writable(const Socket& socket, std::uint64_t number) {
  control(EPOLL_CTL_ADD, socket, EPOLLOUT, number);
}

void Poller::change_to_readable(const Socket& socket, std::uint64_t number) {
  control(EPOLL_CTL_MOD, socket, EPOLLIN, number);
}

const std::uint64_t* Poller::wait(int& count) {
  std::array<epoll_event, kMost> events;
  count = epoll_wait(epoll_.get(), events.data(), kMost, kPatienceMs);
  if (count <= 0) give_up("no answer for a minute");
  std::transform(events.begin(), events.begin() + count, ready_,
                 [](const epoll_event& event) { return event.data.u64; });
  return ready_;
}

}  // namespace ddp::bench
