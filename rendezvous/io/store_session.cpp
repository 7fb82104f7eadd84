#include "rendezvous/io/store_session.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <cerrno>
#include <utility>

namespace ddp::rendezvous {
namespace {

using boost::system::error_code;

constexpr std::size_t kReadAtOnce = 64U << 10;
constexpr std::size_t kLargeBuffer = 16U << 10;
constexpr std::size_t kLargeBuffers = 256;  // at most, of all sessions of a room
// Replies to requests that came together are sent together, up to this much.
constexpr std::size_t kSendAtOnce = 64U << 10;
// After so many bytes of requests, replies and news others have their turn. A few bytes can ask for
// megabytes, and be sent by the thousand.
constexpr std::size_t kWorkAtOnce = 1U << 20;
constexpr std::size_t kWorkOfCall = 4U << 10;  // what a system call takes as long as
// A client with more than this unsent is not read from until it has taken its replies.
constexpr std::size_t kPauseAbove = 1U << 20;
// A buffer that grew beyond this is given back when it holds little or nothing: a session's own,
// and the one that all share, which would otherwise be mapped and unmapped for every larger value.
constexpr std::size_t kKeptBySession = 16U << 10;
constexpr std::size_t kKeptByRoom = 4U << 20;

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void drop_front(std::string& buffer, std::size_t gone) {
  const std::size_t rest = buffer.size() - gone;
  if (buffer.capacity() > kKeptBySession && rest <= buffer.capacity() / 4) {
    // A short rest doesn't keep the memory of the whole; assigned, a very short one would.
    std::string(buffer, gone).swap(buffer);
  } else {
    buffer.erase(0, gone);
  }
}

// What it holds of memory, used or not.
std::size_t memory_of(const std::string& buffer) {
  return buffer.capacity() > std::string{}.capacity() ? buffer.capacity() : 0;
}

}  // namespace

// ---- StoreRoom

StoreRoom::StoreRoom(const StoreLimits& limits, StoreRoomHandlers handlers)
    : limits_(limits), handlers_(std::move(handlers)), store_(limits), input_(kReadAtOnce, '\0') {}

void StoreRoom::admit(StoreSessionId id, boost::asio::ip::tcp::socket socket, StoreDialect dialect,
                      std::string_view already_read) {
  auto session = std::make_shared<StoreSession>(std::move(socket), shared_from_this(), id, dialect);
  sessions_.emplace(id.value, session);
  session->start(already_read);
}

bool StoreRoom::close_if_idle(StoreSessionId id) {
  const auto found = sessions_.find(id.value);
  if (found == sessions_.end() || !found->second->is_idle()) return false;
  const std::shared_ptr<StoreSession> session = found->second;
  session->close();
  return true;
}

void StoreRoom::set_notice(std::string_view key, std::string_view value) {
  StoreOutput out;
  store_.set_notice(key, value, out);
  deliver(out);
}

void StoreRoom::close_all() {
  // Closing a session takes it out of sessions_.
  const auto sessions = std::exchange(sessions_, {});
  for (const auto& [id, session] : sessions) session->close();
}

std::size_t StoreRoom::deliver(StoreOutput& out) {
  woken_.insert(woken_.end(), out.woken.begin(), out.woken.end());
  out.woken.clear();
  // A session that breaks while it is sent something is closed, which may wake the next one.
  if (delivering_) return 0;
  delivering_ = true;
  std::size_t work = wake();
  for (const StoreNews& news : out.news) {
    for (const StoreSessionId to : news.to) send(to, news.bytes);
    work += news.bytes.size() + news.to.size() * (kWorkOfCall + news.bytes.size());
  }
  out.news.clear();
  work += wake();
  delivering_ = false;
  return work;
}

std::size_t StoreRoom::wake() {
  static constexpr char kStopWaiting = static_cast<char>(StoreReply::stop_waiting);
  for (std::size_t i = 0; i < woken_.size(); ++i) send(woken_[i], {&kStopWaiting, 1});
  const std::size_t work = woken_.size() * kWorkOfCall;
  woken_.clear();
  return work;
}

void StoreRoom::send(StoreSessionId to, std::string_view bytes) {
  const auto found = sessions_.find(to.value);
  if (found == sessions_.end()) return;
  const std::shared_ptr<StoreSession> session = found->second;
  session->send(bytes);
}

// ---- StoreSession

StoreSession::StoreSession(boost::asio::ip::tcp::socket socket, std::shared_ptr<StoreRoom> room,
                           StoreSessionId id, StoreDialect dialect)
    : socket_(std::move(socket)),
      room_(std::move(room)),
      id_(id),
      decoder_(dialect, room_->limits_) {}

void StoreSession::start(std::string_view already_read) {
  receive(already_read);
  read();
}

void StoreSession::close() {
  if (!open_) return;
  open_ = false;
  error_code ignored;
  socket_.close(ignored);
  StoreOutput out;
  room_->store_.forget(id_, out);
  room_->store_.release(charged_);
  if (large_) --room_->large_buffers_;  // it goes with the session: a read may be in flight
  room_->sessions_.erase(id_.value);
  room_->handlers_.on_left(id_);
  room_->deliver(out);
}

bool StoreSession::is_idle() {
  char byte = 0;
  return !in_use_ && ::recv(socket_.native_handle(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

void StoreSession::read() {
  if (!open_ || reading_ || has_more_ || paused()) return;
  reading_ = true;
  const std::span<char> into = buffer();
  socket_.async_read_some(boost::asio::buffer(into.data(), into.size()),
                          [self = shared_from_this()](const error_code& error, std::size_t length) {
                            self->reading_ = false;
                            if (!self->open_) return;
                            if (error) return self->close();
                            self->on_read(length);
                          });
}

void StoreSession::on_read(std::size_t length) {
  const std::span<char> from = buffer();
  if (length < from.size()) {
    receive({from.data(), length});
  } else {  // there may be more
    std::string& input = room_->input_;
    std::copy_n(from.data(), length, input.data());
    const ssize_t more =
        ::recv(socket_.native_handle(), input.data() + length, input.size() - length, MSG_DONTWAIT);
    // The end of the stream or an error is found again by the next read.
    const std::size_t all = length + (more > 0 ? static_cast<std::size_t>(more) : 0);
    receive({input.data(), all});
  }
  adapt_buffer(length);
  read();
}

std::span<char> StoreSession::buffer() {
  return large_ ? std::span(large_.get(), kLargeBuffer) : std::span(small_);
}

void StoreSession::adapt_buffer(std::size_t length) {
  if (!open_) return;
  const bool wanted = length >= small_.size();
  if (wanted == (large_ != nullptr)) return;
  if (!wanted) {
    large_.reset();
    --room_->large_buffers_;
  } else if (room_->large_buffers_ < kLargeBuffers) {
    large_ = std::make_unique_for_overwrite<char[]>(kLargeBuffer);
    ++room_->large_buffers_;
  }
}

void StoreSession::receive(std::string_view bytes) {
  if (pending_.empty()) {
    const std::size_t used = carry_out(bytes);
    if (open_) pending_.assign(bytes.substr(used));
  } else {
    pending_.append(bytes);
    const std::size_t used = carry_out(pending_);
    if (open_) drop_front(pending_, used);
  }
  settle_account();
}

std::size_t StoreSession::carry_out(std::string_view bytes) {
  StoreOutput& out = room_->output_;
  std::size_t used = 0;
  std::size_t work = 0;
  while (open_ && used < bytes.size() && !paused()) {
    if (work > kWorkAtOnce) {
      go_on_later();
      break;
    }
    const DecodeState state = decoder_.decode(bytes.substr(used));
    if (state == DecodeState::need_more) break;
    const bool good = state == DecodeState::complete && carry_out_one();
    if (good) used += decoder_.size();
    work += decoder_.size();
    // News don't gather: many short requests can make gigabytes of them.
    const bool concerns_others = !out.woken.empty() || !out.news.empty();
    if (!good || concerns_others || out.reply.size() > kSendAtOnce) work += flush(out);
    if (concerns_others) work += room_->deliver(out);
    if (!good) close();
  }
  flush(out);
  return used;
}

std::size_t StoreSession::flush(StoreOutput& out) {
  const std::size_t size = out.reply.size();
  send(out.reply);
  out.reply.clear();
  if (out.reply.capacity() > kKeptByRoom) out.reply.shrink_to_fit();
  return size;
}

void StoreSession::go_on_later() {
  if (std::exchange(has_more_, true)) return;
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->has_more_ = false;
    if (self->open_ && !self->paused()) self->go_on();
  });
}

// Requests that are here already first, then those that are still with the kernel.
void StoreSession::go_on() {
  if (!pending_.empty()) receive({});
  read();
}

bool StoreSession::carry_out_one() {
  if (!in_use_ && decoder_.request().code != StoreCode::validate) {
    in_use_ = true;
    room_->handlers_.on_in_use(id_);
  }
  return room_->store_.handle({id_, decoder_.dialect()}, decoder_.request(), room_->output_) ==
         SessionFate::keep;
}

void StoreSession::send(std::string_view bytes) {
  if (!open_ || bytes.empty()) return;
  if (unsent() == 0) {
    const ssize_t sent =
        ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && !would_block(errno)) return close();
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (bytes.empty()) return;
  }
  if (bytes.size() > room_->limits_.unsent - unsent()) return close();
  if (sent_ > kSendAtOnce && sent_ > unsent()) unsent_.erase(0, std::exchange(sent_, 0));
  unsent_.append(bytes);
  settle_account();
  wait_writable();
}

void StoreSession::wait_writable() {
  if (!open_ || writing_) return;
  writing_ = true;
  socket_.async_wait(boost::asio::ip::tcp::socket::wait_write,
                     [self = shared_from_this()](const error_code& error) {
                       self->writing_ = false;
                       if (!self->open_) return;
                       if (error) return self->close();
                       self->on_writable();
                     });
}

void StoreSession::on_writable() {
  const ssize_t sent = ::send(socket_.native_handle(), unsent_.data() + sent_, unsent(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && !would_block(errno)) return close();
  if (sent > 0) sent_ += static_cast<std::size_t>(sent);
  if (unsent() <= unsent_.capacity() / 4) drop_front(unsent_, std::exchange(sent_, 0));
  settle_account();
  if (unsent() > 0) wait_writable();
  if (open_ && !paused() && !reading_ && !has_more_) go_on();
}

bool StoreSession::paused() const {
  return unsent() > kPauseAbove;
}

void StoreSession::settle_account() {
  if (!open_) return;
  const std::size_t held = memory_of(pending_) + memory_of(unsent_);
  if (held > charged_) {
    if (!room_->store_.charge(held - charged_)) return close();
  } else {
    room_->store_.release(charged_ - held);
  }
  charged_ = held;
}

}  // namespace ddp::rendezvous
