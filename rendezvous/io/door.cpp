#include "rendezvous/io/door.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address_v6.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "rendezvous/io/machine_time.h"

namespace ddp::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 65'535;  // the kernel caps it
constexpr int kAcceptAtOnce = 64;
// How long a newcomer is left in peace, and how often we look whether there is room again.
constexpr auto kGrace = std::chrono::milliseconds(100);
// Whoever finds no room for so long is told: better to try again than to wait for an answer that
// never comes.
constexpr auto kPatience = std::chrono::seconds(5);

// Every other error of accept concerns one connection only.
bool nothing_to_accept(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}
bool out_of_resources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

PeerAddress address_of_peer(const tcp::socket& socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  PeerAddress address;  // of one that has gone again: none
  if (error) return address;
  const auto v6 = peer.address().is_v6() ? peer.address().to_v6()
                                         : boost::asio::ip::make_address_v6(
                                               boost::asio::ip::v4_mapped, peer.address().to_v4());
  const auto bytes = v6.to_bytes();
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
  return address;
}

int accept_one(tcp::acceptor& acceptor) {
  return ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

}  // namespace

void SpareDescriptor::give() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}
void SpareDescriptor::take() {
  if (descriptor_ < 0) descriptor_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

// ---- a connection that hasn't said yet what it speaks

class Door::Undecided : public std::enable_shared_from_this<Undecided> {
 public:
  Undecided(tcp::socket socket, std::shared_ptr<Door> door, ConnectionId id)
      : socket_(std::move(socket)), door_(std::move(door)), id_(id), era_(door_->era_) {}

  void read() {
    socket_.async_read_some(
        boost::asio::buffer(bytes_.data() + length_, bytes_.size() - length_),
        [self = shared_from_this()](const error_code& error, std::size_t length) {
          if (!self->door_->open_ || !self->socket_.is_open()) return;
          if (error) return self->door_->forget(self->id_);
          self->length_ += length;
          self->look();
        });
  }

  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

  // Bytes have come that nobody has looked at yet.
  [[nodiscard]] bool has_unread() {
    char byte = 0;
    return ::recv(socket_.native_handle(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0;
  }

  [[nodiscard]] ConnectionId id() const { return id_; }
  [[nodiscard]] bool is_of_this_era() const { return era_ == door_->era_; }
  [[nodiscard]] std::string bytes() const { return {bytes_.data(), length_}; }
  [[nodiscard]] tcp::socket take_socket() { return std::move(socket_); }

 private:
  void look() {
    const Protocol protocol = recognise_protocol({bytes_.data(), length_});
    if (protocol != Protocol::undecided) return door_->hand_over(*this, protocol);
    door_->newcomers_.advance(id_, Arrival::undecided, machine_now());
    read();
  }

  tcp::socket socket_;
  std::shared_ptr<Door> door_;
  ConnectionId id_;
  std::uint64_t era_;
  std::size_t length_ = 0;
  std::array<char, 64> bytes_;  // more than is ever undecided
};

// ---- the port

Door::Door(boost::asio::io_context& context, ListenerRoutes routes, std::size_t limit)
    : context_(context),
      acceptor_(context),
      pause_(context),
      routes_(std::move(routes)),
      limit_(limit),
      newcomers_(kGrace) {}

error_code Door::open(const tcp::endpoint& at, Endpoint asked) {
  error_code error;
  if (acceptor_.is_open()) acceptor_.close(error);  // an earlier try failed
  protocol_ = at.protocol();
  if (acceptor_.open(protocol_, error)) return error;
  ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  if (acceptor_.set_option(tcp::acceptor::reuse_address(true), error)) return error;
  // What is accepted inherits it.
  if (acceptor_.set_option(tcp::no_delay(true), error)) return error;
  if (at.address().is_v6() && at.address().is_unspecified()) {
    acceptor_.set_option(boost::asio::ip::v6_only(false), error);
  }
  if (acceptor_.bind(at, error)) return error;
  if (acceptor_.listen(kBacklog, error)) return error;
  if (acceptor_.non_blocking(true, error)) return error;
  endpoint_ = std::move(asked);
  endpoint_.port = Port{acceptor_.local_endpoint(error).port()};
  return error;
}

void Door::close() {
  open_ = false;
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  const auto undecided = std::exchange(undecided_, {});
  for (const auto& [id, connection] : undecided) connection->close();
}

void Door::wait_for_connections() {
  acceptor_.async_wait(tcp::acceptor::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                         if (!error && self->open_) self->accept_all();
                       });
}

void Door::accept_all() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    if (connections() >= limit_) {
      if (!somebody_waits()) break;
      if (!make_room()) return wait_for_room();
    }
    const int descriptor = accept_one(acceptor_);
    if (descriptor >= 0) {
      full_since_.reset();
      welcome(descriptor);
      continue;
    }
    if (nothing_to_accept(errno)) break;
    if (!out_of_resources(errno)) continue;
    // The kernel says so before it looks whether anybody is there.
    if (!somebody_waits()) break;
    if (!make_room()) return wait_for_room();
  }
  full_since_.reset();  // nobody waits, or there was room
  wait_for_connections();
}

bool Door::somebody_waits() const {
  // Asio has no const native_handle().
  pollfd listening{const_cast<tcp::acceptor&>(acceptor_).native_handle(), POLLIN, 0};
  return ::poll(&listening, 1, 0) > 0;
}

void Door::welcome(int descriptor) {
  tcp::socket socket(context_);
  error_code error;
  if (socket.assign(protocol_, descriptor, error)) {
    ::close(descriptor);
    return;
  }
  const ConnectionId id{next_id_++};
  newcomers_.enter(id, address_of_peer(socket), machine_now());
  const auto connection = std::make_shared<Undecided>(std::move(socket), shared_from_this(), id);
  undecided_.emplace(id.value, connection);
  connection->read();
}

void Door::hand_over(Undecided& connection, Protocol protocol) {
  const ConnectionId id = connection.id();
  const bool legacy = protocol == Protocol::tcpstore_legacy;
  const bool is_store = legacy || protocol == Protocol::tcpstore_c;
  tcp::socket socket = connection.take_socket();
  std::string bytes = connection.bytes();
  const bool in_time = connection.is_of_this_era();
  const bool welcome = is_store && routes_.store && in_time;
  if (welcome) newcomers_.advance(id, Arrival::greeted, machine_now());
  if (welcome) {
    undecided_.erase(id.value);
    ++store_clients_;
    if (legacy) legacy_clients_.insert(id.value);
    routes_.store(std::move(socket), legacy ? routes_.legacy : StoreDialect::c, id, bytes);
    return;
  }
  forget(id);
  if (protocol == Protocol::agent && routes_.agent) {
    routes_.agent(std::move(socket), std::move(bytes));
  }
  // Otherwise the socket closes here.
}

void Door::forget(ConnectionId connection) {
  newcomers_.leave(connection);
  undecided_.erase(connection.value);
  if (pausing_) pause_.cancel();
}

void Door::store_client_in_use(ConnectionId connection) {
  newcomers_.put_in_use(connection, legacy_clients_.erase(connection.value) > 0);
}

void Door::store_client_left(ConnectionId connection) {
  newcomers_.leave(connection);
  legacy_clients_.erase(connection.value);
  --store_clients_;
  if (pausing_) pause_.cancel();
}

// ---- when there is no room

bool Door::make_room() {
  const Instant now = machine_now();
  while (const auto oldest = newcomers_.to_close(now)) {
    const auto found = undecided_.find(oldest->value);
    if (found == undecided_.end()) {
      if (routes_.close_idle_store(*oldest)) return true;
      newcomers_.advance(*oldest, Arrival::greeted, now);
    } else if (found->second->has_unread()) {
      newcomers_.advance(*oldest, Arrival::undecided, now);
    } else {
      found->second->close();
      forget(*oldest);
      return true;
    }
  }
  return false;
}

void Door::wait_for_room() {
  const Instant now = machine_now();
  if (!full_since_) full_since_ = now;
  if (now - *full_since_ >= kPatience) turn_away();
  pausing_ = true;
  pause_.expires_after(kGrace);
  pause_.async_wait([self = shared_from_this()](const error_code&) {
    self->pausing_ = false;
    if (self->open_) self->accept_all();
  });
}

void Door::turn_away() {
  if (!std::exchange(has_warned_, true) && routes_.on_warning) {
    routes_.on_warning("no room for more connections at " + text_of(endpoint_) + " (" +
                       std::to_string(connections()) +
                       " in use); clients are turned away until some leave; raise the limit of "
                       "open files (ulimit -n)");
  }
  spare_.give();
  for (int i = 0; full_since_ && i < kAcceptAtOnce; ++i) {
    const int descriptor = accept_one(acceptor_);
    if (descriptor >= 0) {
      ::close(descriptor);
    } else {
      full_since_.reset();  // that was the last: the next one has its own time
    }
  }
  spare_.take();
}

}  // namespace ddp::rendezvous
