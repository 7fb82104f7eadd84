#include "rendezvous/io/message_channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <utility>

#include "rendezvous/core/message_json.h"

namespace ddp::rendezvous {
namespace {

using boost::system::error_code;

constexpr std::size_t kReadAtOnce = 16 * 1024;
constexpr std::size_t kMaxUnsent = 4 * kMaxFrame;
constexpr Duration kLinger = std::chrono::seconds(2);

}  // namespace

MessageChannel::MessageChannel(boost::asio::ip::tcp::socket socket, FrameReader reader,
                               ChannelHandlers handlers)
    : socket_(std::move(socket)),
      linger_(socket_.get_executor()),
      reader_(std::move(reader)),
      handlers_(std::move(handlers)) {}

void MessageChannel::start(std::string already_read) {
  boost::asio::post(socket_.get_executor(),
                    [self = shared_from_this(), bytes = std::move(already_read)] {
                      if (!self->open_) return;
                      self->receive(bytes);
                      self->wait_readable();
                    });
}

void MessageChannel::wait_readable() {
  if (!open_) return;
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_read,
                     [self = shared_from_this()](const error_code& error) {
                       if (!self->open_) return;
                       if (error) return self->fail(error.message());
                       self->on_readable();
                     });
}

void MessageChannel::on_readable() {
  std::array<char, kReadAtOnce> buffer;
  const ssize_t count = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count == 0) return fail("the other side closed the connection");
  if (count > 0) {
    receive({buffer.data(), static_cast<std::size_t>(count)});
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    return fail(error_code(errno, boost::system::system_category()).message());
  }
  wait_readable();
}

void MessageChannel::receive(std::string_view bytes) {
  if (closing_) return;
  std::string problem;
  const auto fed = reader_.feed(bytes, [&](std::string_view payload) {
    auto message = read_message(payload);
    if (!message) {
      problem = message.error().message;
      return false;
    }
    if (message.value()) handlers_.on_message(std::move(*message.value()));
    return open_ && !closing_;
  });
  if (!fed) problem = fed.error().message;
  if (!problem.empty() && open_) fail(problem);
}

void MessageChannel::send(const Message& message) {
  if (!open_ || closing_) return;
  append_frame(unsent_, write_message(message));
  write_more();
}

void MessageChannel::send_magic() {
  unsent_.append(kAgentMagic);
}

void MessageChannel::write_more() {
  if (!in_flight_.empty()) {
    if (unsent_.size() <= kMaxUnsent) return;
    // From the loop, since the caller is in the middle of something.
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->open_) self->fail("the other side does not read what it is sent");
    });
    return;
  }
  if (unsent_.empty()) return;
  std::swap(in_flight_, unsent_);
  boost::asio::async_write(socket_, boost::asio::buffer(in_flight_),
                           [self = shared_from_this()](const error_code& error, std::size_t) {
                             self->in_flight_.clear();
                             if (!self->open_) return;
                             if (error) return self->fail(error.message());
                             self->write_more();
                             if (self->closing_ && self->in_flight_.empty()) self->end_sending();
                           });
}

void MessageChannel::close_after_sending() {
  if (!open_ || closing_) return;
  closing_ = true;
  linger_.expires_after(kLinger);
  linger_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->open_) self->fail("closed by this side");
  });
  if (in_flight_.empty()) end_sending();
}

// Closing with unread bytes would reset the connection and take our last words with it, so the
// other side is read until it closes too.
void MessageChannel::end_sending() {
  error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
}

void MessageChannel::fail(const std::string& why) {
  const auto on_closed = std::move(handlers_.on_closed);
  abandon();
  if (on_closed) on_closed(why);
}

void MessageChannel::abandon() {
  if (!std::exchange(open_, false)) return;
  error_code ignored;
  socket_.close(ignored);
  linger_.cancel();
}

void prepare_agent_socket(boost::asio::ip::tcp::socket& socket) {
  error_code ignored;
  socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace ddp::rendezvous
