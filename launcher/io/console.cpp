#include "launcher/io/console.h"

#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "launcher/core/failure_text.h"
#include "launcher/io/signals_blocked.h"

namespace ddp::launcher {
namespace {

constexpr std::size_t kLinesHeld = 4096;

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody who shares this descriptor has made it non-blocking.
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

// Counts what it has written, so that whoever leaves can wait for it.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  StderrSink() {
    set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%v", spdlog::pattern_time_type::local, std::string()));
  }

  template <typename Done>
  bool wait(std::chrono::seconds limit, Done done) {
    std::unique_lock lock(count_mutex_);
    return written_more_.wait_for(lock, limit, [&] { return done(count_); });
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    write_to_stderr({message.payload.data(), message.payload.size()});
    const std::lock_guard lock(count_mutex_);
    ++count_;
    written_more_.notify_all();
  }
  void flush_() override {}

  std::mutex count_mutex_;
  std::condition_variable written_more_;
  std::uint64_t count_ = 0;
};

std::shared_ptr<spdlog::details::thread_pool> start_thread() {
  const SignalsBlocked blocked;  // those that end the job belong to the loop
  return std::make_shared<spdlog::details::thread_pool>(kLinesHeld, 1);
}

}  // namespace

struct Console::Writer {
  std::shared_ptr<spdlog::details::thread_pool> pool = start_thread();
  std::shared_ptr<StderrSink> sink = std::make_shared<StderrSink>();
  std::shared_ptr<spdlog::async_logger> logger = std::make_shared<spdlog::async_logger>(
      "ddplaunch", sink, pool, spdlog::async_overflow_policy::overrun_oldest);
  std::uint64_t sent = 0;
};

Console::Console() = default;

Console::~Console() = default;

Console::Writer& Console::writer() {
  if (!writer_) writer_ = std::make_unique<Writer>();
  return *writer_;
}

void Console::line(const std::string& text) {
  this->text("ddplaunch: " + printable(text) + "\n");
}

void Console::text(const std::string& text) {
  if (text.empty()) return;
  Writer& to = writer();
  ++to.sent;
  to.logger->log(spdlog::level::info, spdlog::string_view_t(text));
}

bool Console::drain(std::chrono::seconds limit) {
  if (!writer_) return true;
  return writer_->sink->wait(limit, [this](std::uint64_t written) {
    return written + writer_->pool->overrun_counter() >= writer_->sent;
  });
}

}  // namespace ddp::launcher
