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
#include <optional>
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
constexpr std::chrono::milliseconds kHereAtMost{1000};
constexpr std::chrono::milliseconds kLeftBehindAfter{1000};

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
  bool stuck = false;                 // what comes is dropped
  bool late = false;                  // what the thread is writing is given up
  std::optional<std::size_t> wanted;  // held at most: then somebody is told
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
    if (!wanted || abandoned || (!stuck && held() > *wanted)) return;
    wanted.reset();
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
    if (written < 0 || stuck || late) {
      losses.bytes += rest.size();
      rest = {};
    }
    if (written < 0 && losses.error == 0) {
      losses.error = static_cast<int>(-written);
      if (!abandoned) on_error(losses.error);
    }
    stuck = late = false;
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
  bool drained = false;
  {
    std::unique_lock lock(state_->mutex);
    drained = state_->changed.wait_for(lock, kLeftBehindAfter, [this] { return !state_->held(); });
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
  const Clock::time_point give_up = Clock::now() + kHereAtMost;
  while (!bytes.empty()) {
    pollfd room{state_->descriptor, POLLOUT, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now());
    const bool ready = ::poll(&room, 1, std::max(0, static_cast<int>(left.count()))) > 0;
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
  when_held_at_most(kCapacity / 2, std::move(call));
}

void OutputWriter::when_written(std::function<void()> call) {
  when_held_at_most(0, std::move(call));
}

void OutputWriter::when_held_at_most(std::size_t most, std::function<void()> call) {
  room_call_ = std::move(call);
  const std::lock_guard lock(state_->mutex);
  state_->wanted.reset();
  if (!room_call_) {
    timer_.cancel();
    return;
  }
  state_->wanted = most;
  state_->tell_if_room();
  watch_for_stuck();
}

// With the mutex held. Only while somebody waits: what is held is bounded, and may wait as well.
void OutputWriter::watch_for_stuck() {
  timer_.expires_at(state_->moved_at + kStuckAfter);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const std::lock_guard lock(state_->mutex);
    if (!state_->wanted) return;
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

void OutputWriter::drop() {
  const std::lock_guard lock(state_->mutex);
  if (state_->held() == 0) return;
  state_->losses.bytes += state_->pending.size();
  state_->losses.late = true;
  state_->pending.clear();
  state_->late = true;
}

bool OutputWriter::idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held() == 0;
}

OutputWriter::Losses OutputWriter::losses() const {
  const std::lock_guard lock(state_->mutex);
  Losses losses = state_->losses;
  if (state_->stuck || state_->late) losses.bytes += state_->in_flight;
  return losses;
}

}  // namespace ddp::launcher
