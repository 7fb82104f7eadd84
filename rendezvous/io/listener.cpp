#include "rendezvous/io/listener.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "rendezvous/core/first_bytes.h"
#include "rendezvous/io/port_owner.h"

namespace ddp::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 65'535;  // the kernel caps it
constexpr int kAcceptAtOnce = 256;
constexpr std::size_t kGreetingAtOnce = 4096;
// How long to leave new connections waiting when we are out of descriptors: trying again at once
// would only spin.
constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(100);

Error cannot_listen(const Endpoint& endpoint, const tcp::endpoint& at, const error_code& why) {
  std::string text = "cannot listen on " + text_of(endpoint) + ": ";
  if (why == asio::error::address_in_use) {
    const auto owner = port_owner(at);
    text += owner ? "in use by " + *owner : "address already in use";
    text += "; stop what listens there or choose another port (0: a free one)";
  } else if (why.value() == EADDRNOTAVAIL) {
    text += "this host has no such address; give one of its own";
  } else if (why == asio::error::access_denied) {
    text += "permission denied; choose a port of 1024 or more";
  } else {
    text += why.message();
  }
  return Error{text};
}

// Every other error of accept concerns one connection only, or is cured by waiting.
bool nothing_to_accept(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}
bool out_of_resources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Result<asio::ip::address> resolve_address(const std::string& host) {
  error_code error;
  const auto literal = asio::ip::make_address(host, error);
  if (!error) return literal;
  asio::io_context context;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty()) {
    return Error{"cannot resolve \"" + host +
                 "\": " + (error ? error.message() : "it has no address") +
                 "; check the name, or give an address"};
  }
  for (const auto& entry : found) {
    if (entry.endpoint().address().is_v4()) return entry.endpoint().address();
  }
  return found.begin()->endpoint().address();
}

// Shared with the handlers that are in flight.
class Listener::Door : public std::enable_shared_from_this<Door> {
 public:
  Door(asio::io_context& context, ListenerRoutes routes)
      : context_(context), acceptor_(context), pause_(context), routes_(std::move(routes)) {}

  error_code open(const tcp::endpoint& at, Endpoint asked);
  void close();
  void wait_for_connections();
  void hand_over(tcp::socket socket, Protocol protocol, std::string bytes, std::uint64_t era);

  // A connection whose protocol is not known yet.
  class Newcomer;
  std::unordered_set<std::shared_ptr<Newcomer>> newcomers_;
  Endpoint endpoint_;
  std::uint64_t era_ = 0;
  bool open_ = true;

 private:
  void accept_all();
  void welcome(int descriptor);

  asio::io_context& context_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  ListenerRoutes routes_;
  tcp protocol_ = tcp::v4();
};

class Listener::Door::Newcomer : public std::enable_shared_from_this<Newcomer> {
 public:
  Newcomer(tcp::socket socket, std::shared_ptr<Door> door)
      : socket_(std::move(socket)), door_(std::move(door)), era_(door_->era_) {}

  void wait() {
    socket_.async_wait(tcp::socket::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         if (!self->door_->open_) return;
                         if (error) return self->leave();
                         self->look();
                       });
  }

  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  void look() {
    std::array<char, kGreetingAtOnce> bytes;
    const ssize_t received =
        ::recv(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received == 0) return leave();
    if (received < 0) {
      if (errno == EAGAIN || errno == EINTR) return wait();
      return leave();
    }
    bytes_.append(bytes.data(), static_cast<std::size_t>(received));
    const Protocol protocol = recognise_protocol(bytes_);
    if (protocol == Protocol::undecided) return wait();
    door_->newcomers_.erase(shared_from_this());
    door_->hand_over(std::move(socket_), protocol, std::move(bytes_), era_);
  }

  void leave() { door_->newcomers_.erase(shared_from_this()); }

  tcp::socket socket_;
  std::shared_ptr<Door> door_;
  std::uint64_t era_;
  std::string bytes_;
};

error_code Listener::Door::open(const tcp::endpoint& at, Endpoint asked) {
  error_code error;
  protocol_ = at.protocol();
  if (acceptor_.open(protocol_, error)) return error;
  ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  if (acceptor_.set_option(tcp::acceptor::reuse_address(true), error)) return error;
  if (at.address().is_v6() && at.address().is_unspecified()) {
    acceptor_.set_option(asio::ip::v6_only(false), error);
  }
  if (acceptor_.bind(at, error)) return error;
  if (acceptor_.listen(kBacklog, error)) return error;
  if (acceptor_.non_blocking(true, error)) return error;
  endpoint_ = std::move(asked);
  endpoint_.port = Port{acceptor_.local_endpoint(error).port()};
  return error;
}

void Listener::Door::close() {
  open_ = false;
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  const auto newcomers = std::exchange(newcomers_, {});
  for (const auto& newcomer : newcomers) newcomer->close();
}

void Listener::Door::wait_for_connections() {
  acceptor_.async_wait(tcp::acceptor::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         if (!error && self->open_) self->accept_all();
                       });
}

void Listener::Door::accept_all() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    const int descriptor =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      welcome(descriptor);
      continue;
    }
    if (nothing_to_accept(errno)) break;
    if (!out_of_resources(errno)) continue;
    pause_.expires_after(kPauseWithoutDescriptors);
    pause_.async_wait([self = shared_from_this()](const error_code&) {
      if (self->open_) self->wait_for_connections();
    });
    return;
  }
  wait_for_connections();
}

void Listener::Door::welcome(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  tcp::socket socket(context_);
  error_code error;
  if (socket.assign(protocol_, descriptor, error)) {
    ::close(descriptor);
    return;
  }
  const auto newcomer = std::make_shared<Newcomer>(std::move(socket), shared_from_this());
  newcomers_.insert(newcomer);
  newcomer->wait();
}

void Listener::Door::hand_over(tcp::socket socket, Protocol protocol, std::string bytes,
                               std::uint64_t era) {
  const bool is_store = protocol == Protocol::tcpstore_legacy || protocol == Protocol::tcpstore_c;
  if (is_store && routes_.store && era == era_) {
    const bool legacy = protocol == Protocol::tcpstore_legacy;
    const StoreDialect dialect = legacy ? routes_.legacy : StoreDialect::c;
    routes_.store(std::move(socket), dialect, std::move(bytes));
  } else if (protocol == Protocol::agent && routes_.agent) {
    routes_.agent(std::move(socket), std::move(bytes));
  }
  // Otherwise the socket closes here.
}

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& context,
                                                 const Endpoint& endpoint, ListenerRoutes routes) {
  const auto address = resolve_address(endpoint.host);
  if (!address) return address.error();
  const auto door = std::make_shared<Door>(context, std::move(routes));
  const tcp::endpoint at(address.value(), endpoint.port.value);
  if (const error_code error = door->open(at, endpoint)) return cannot_listen(endpoint, at, error);
  door->wait_for_connections();
  return std::make_unique<Listener>(Key{}, door);
}

Listener::Listener(Key, std::shared_ptr<Door> door) : door_(std::move(door)) {}
Listener::~Listener() {
  door_->close();
}

const Endpoint& Listener::endpoint() const {
  return door_->endpoint_;
}
std::size_t Listener::undecided_connections() const {
  return door_->newcomers_.size();
}
void Listener::refuse_earlier_store_clients() {
  ++door_->era_;
}

}  // namespace ddp::rendezvous
