#include "launcher/io/event_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "launcher/io/signals_blocked.h"

namespace ddp::launcher {
namespace {

constexpr mode_t kMode = 0666;  // less the umask
constexpr int kLookAgainMs = 100;

EventLines::WallTime now() {
  return std::chrono::duration_cast<EventLines::WallTime>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::string message(int error) {
  return std::generic_category().message(error);
}

}  // namespace

struct EventFile::State {
  UniqueFd file;
  std::function<void()> on_trouble;  // from any thread
  std::function<void()> on_written;  // likewise, once; empty: nobody waits

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> queue;
  std::size_t held = 0;  // bytes, with what is being written
  std::string trouble;   // the first one
  bool trouble_told = false;
  bool ending = false;

  bool torn = false;  // the file ends within a line; the thread's own

  void run();
  void write(std::string_view lines);
  void note_trouble(const std::string& what);  // with the mutex held
  void tell_if_written();                      // likewise
};

void EventFile::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return ending || !queue.empty(); });
    if (queue.empty()) return;
    const std::string lines = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    write(lines);
    lock.lock();
    held -= lines.size();
    tell_if_written();
  }
}

// In one call to the system, so that several writers of one file don't cut each other's lines.
void EventFile::State::write(std::string_view lines) {
  const std::string whole = torn ? "\n" + std::string(lines) : std::string();
  std::string_view left = torn ? std::string_view(whole) : lines;
  const std::size_t size = left.size();
  while (!left.empty()) {
    const ssize_t written = ::write(file.get(), left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // A pipe, which we have opened for ourselves.
      pollfd room{file.get(), POLLOUT, 0};
      ::poll(&room, 1, kLookAgainMs);
      const std::lock_guard lock(mutex);
      if (ending) break;
    } else if (errno != EINTR) {
      const std::lock_guard lock(mutex);
      note_trouble(message(errno));
      break;
    }
  }
  torn = left.size() != size ? !left.empty() : torn;
}

void EventFile::State::tell_if_written() {
  if (held == 0 && on_written) std::exchange(on_written, nullptr)();
}

void EventFile::State::note_trouble(const std::string& what) {
  if (!trouble.empty()) return;
  trouble = what;
  on_trouble();
}

std::variant<UniqueFd, std::string> EventFile::open(const std::string& path) {
  constexpr int kFlags = O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | kFlags, kMode));
  // A pipe that nobody reads yet: with a reading end of our own it can wait for its reader.
  if (!file.valid() && errno == ENXIO) file.reset(::open(path.c_str(), O_RDWR | kFlags));
  if (file.valid()) return file;
  const int error = errno;
  return "cannot open " + path + ": " + (error == ELOOP ? "it is a symbolic link" : message(error));
}

EventFile::EventFile(boost::asio::io_context& context, UniqueFd file, EventLines lines,
                     std::function<void(const std::string& text)> on_trouble)
    : context_(context),
      lines_(std::move(lines)),
      on_trouble_(std::move(on_trouble)),
      state_(std::make_shared<State>()) {
  state_->file = std::move(file);
  state_->on_trouble = [this, &context] { boost::asio::post(context, [this] { tell_trouble(); }); };
  const SignalsBlocked blocked;
  thread_ = std::thread([state = state_] { state->run(); });
}

EventFile::~EventFile() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
    state_->changed.notify_all();
  }
  thread_.join();
}

void EventFile::note_launch() {
  append(lines_.launched(now()));
}

void EventFile::note(const AgentEvent& event) {
  append(lines_.of(event, now()));
}

void EventFile::note(const AgentEffects& effects) {
  append(lines_.of(effects, now()));
}

void EventFile::append(std::string lines) {
  if (lines.empty()) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->held + lines.size() > kMostHeld) {
    return state_->note_trouble("nobody takes them");
  }
  state_->held += lines.size();
  state_->queue.push_back(std::move(lines));
  state_->changed.notify_all();
}

void EventFile::when_written(std::function<void()> call) {
  const std::lock_guard lock(state_->mutex);
  state_->on_written = [this, call = std::move(call)] { boost::asio::post(context_, call); };
  state_->tell_if_written();
}

void EventFile::give_up() {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->held == 0) return;
    state_->note_trouble("nobody takes them");
  }
  tell_trouble();
}

bool EventFile::idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held == 0;
}

void EventFile::tell_trouble() {
  std::string text;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->trouble.empty() || std::exchange(state_->trouble_told, true)) return;
    text = "--events: lines are lost: " + state_->trouble;
  }
  on_trouble_(text);
}

}  // namespace ddp::launcher
