#include "launcher/io/output_writer.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "launcher/io/signals_blocked.h"

namespace ddp::launcher {

using Clock = std::chrono::steady_clock;

namespace {

// A pipe that has room takes so much at once, so a slow reader shows after each page that it is
// alive. Files don't wait for anybody.
constexpr std::size_t kPage = 4096;
constexpr std::size_t kFilePiece = 256 * 1024;
constexpr int kHereAtMostMs = 1000;

std::size_t piece_for(int descriptor) {
  struct stat info {};
  const bool is_file = ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? kFilePiece : kPage;
}

// As many as it took, or -errno.
ssize_t write_some(int descriptor, std::string_view bytes) {
  for (;;) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) return written;
    if (errno == EAGAIN) {
      // Somebody who shares this descriptor has made it non-blocking.
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return -errno;
    }
  }
}

}  // namespace

struct OutputWriter::State {
  explicit State(int fd) : descriptor(fd) {}

  const int descriptor;
  std::mutex mutex;
  std::condition_variable changed;
  std::string pending;        // comes next
  std::size_t in_flight = 0;  // of what the thread is writing
  Clock::time_point moved_at;
  bool stuck = false;  // what comes is dropped
  bool room_wanted = false;
  bool stopping = false;
  bool abandoned = false;  // nobody is there to be told anything
  Losses losses;
  std::function<void()> on_room;      // from the thread, with the mutex held
  std::function<void(int)> on_error;  // likewise

  [[nodiscard]] std::size_t held() const { return pending.size() + in_flight; }
  void judge() {
    if (stuck || Clock::now() < moved_at + kStuckAfter) return;
    stuck = true;
    losses.bytes += pending.size();
    pending.clear();
  }
  void tell_if_room() {
    if (!room_wanted || abandoned || (!stuck && held() > kCapacity / 2)) return;
    room_wanted = false;
    on_room();
  }
  void work();
  void write_out(const std::string& bytes, std::size_t piece);
};

// In the thread.
void OutputWriter::State::work() {
  const std::size_t piece = piece_for(descriptor);
  std::string writing;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return !pending.empty() || stopping; });
      if (pending.empty()) return;
      writing.clear();
      writing.swap(pending);
      in_flight = writing.size();
    }
    write_out(writing, piece);
  }
}

void OutputWriter::State::write_out(const std::string& bytes, std::size_t piece) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = write_some(descriptor, rest.substr(0, piece));
    const std::lock_guard lock(mutex);
    moved_at = Clock::now();
    if (written >= 0) rest.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 || stuck) {
      losses.bytes += rest.size();
      rest = {};
    }
    if (written < 0 && losses.error == 0) {
      losses.error = static_cast<int>(-written);
      if (!abandoned) on_error(losses.error);
    }
    stuck = false;
    in_flight = rest.size();
    tell_if_room();
    changed.notify_all();
  }
}

OutputWriter::OutputWriter(boost::asio::io_context& context, int descriptor)
    : context_(context), timer_(context), state_(std::make_shared<State>(descriptor)) {
  state_->on_room = [this] { boost::asio::post(context_, [this] { tell_room(); }); };
  state_->on_error = [this](int error) {
    boost::asio::post(context_, [this, error] {
      if (error_call_) error_call_(error);
    });
  };
}

OutputWriter::~OutputWriter() {
  if (!thread_.joinable()) return;
  const bool drained = drain();
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->abandoned = true;
    state_->changed.notify_all();
  }
  if (drained) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

bool OutputWriter::start() {
  const SignalsBlocked blocked;  // those that end the job belong to the loop
  try {
    thread_ = std::thread([state = state_] { state->work(); });
  } catch (const std::system_error&) {
    return false;  // at the limit of processes
  }
  return true;
}

// Without a thread what can be said is still said, and nobody is kept waiting for long.
void OutputWriter::write_here(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd room{state_->descriptor, POLLOUT, 0};
    const bool ready = ::poll(&room, 1, kHereAtMostMs) > 0;
    const ssize_t written =
        ready ? write_some(state_->descriptor, bytes.substr(0, PIPE_BUF)) : -EAGAIN;
    if (written < 0) {
      state_->losses.bytes += bytes.size();
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputWriter::write(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!thread_.joinable() && !start()) return write_here(bytes);
  const std::lock_guard lock(state_->mutex);
  if (state_->held() == 0) state_->moved_at = Clock::now();
  // What can't be held back, the last words of the dead and our own, is taken beyond the capacity.
  if (state_->held() >= kCapacity) state_->judge();
  if (state_->stuck) {
    state_->losses.bytes += bytes.size();
    return;
  }
  state_->pending += bytes;
  state_->changed.notify_all();
}

bool OutputWriter::has_room() const {
  const std::lock_guard lock(state_->mutex);
  return state_->stuck || state_->held() < kCapacity;
}

void OutputWriter::when_room(std::function<void()> call) {
  room_call_ = std::move(call);
  const std::lock_guard lock(state_->mutex);
  state_->room_wanted = static_cast<bool>(room_call_);
  if (!state_->room_wanted) {
    timer_.cancel();
    return;
  }
  state_->tell_if_room();
  watch_for_stuck();
}

// With the mutex held. Only while somebody waits: what is held is bounded, and may wait as well.
void OutputWriter::watch_for_stuck() {
  timer_.expires_at(state_->moved_at + kStuckAfter);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const std::lock_guard lock(state_->mutex);
    if (!state_->room_wanted) return;
    state_->judge();
    if (state_->stuck) {
      state_->tell_if_room();
    } else {
      watch_for_stuck();
    }
  });
}

void OutputWriter::tell_room() {
  timer_.cancel();
  if (room_call_) std::exchange(room_call_, nullptr)();
}

void OutputWriter::on_error(std::function<void(int error)> call) {
  error_call_ = std::move(call);
}

bool OutputWriter::drain() {
  std::unique_lock lock(state_->mutex);
  const auto empty = [this] { return state_->held() == 0; };
  while (!empty()) {
    const Clock::time_point give_up = state_->moved_at + kStuckAfter;
    if (state_->stuck || Clock::now() >= give_up) return false;
    state_->changed.wait_until(lock, give_up);
  }
  return true;
}

OutputWriter::Losses OutputWriter::losses() const {
  const std::lock_guard lock(state_->mutex);
  Losses losses = state_->losses;
  if (state_->stuck) losses.bytes += state_->in_flight;
  return losses;
}

}  // namespace ddp::launcher
