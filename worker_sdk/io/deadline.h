// The moment by which something must have ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace ddp::sdk {

using Milliseconds = std::chrono::milliseconds;

// "For ever" is milliseconds::max() to many programs, and a clock can't be added to that.
inline Milliseconds bounded(Milliseconds timeout) {
  constexpr Milliseconds kMost = std::chrono::hours(365 * 24);
  return std::min(timeout, kMost);
}

class Deadline {
 public:
  explicit Deadline(Milliseconds timeout)
      : timeout_(bounded(timeout)), end_(std::chrono::steady_clock::now() + timeout_) {}

  // Never negative.
  [[nodiscard]] Milliseconds remaining() const {
    const auto left = std::chrono::duration_cast<Milliseconds>(
        end_ - std::chrono::steady_clock::now() + std::chrono::microseconds(999));
    return left.count() < 0 ? Milliseconds(0) : left;
  }
  [[nodiscard]] bool passed() const { return std::chrono::steady_clock::now() >= end_; }
  [[nodiscard]] Milliseconds timeout() const { return timeout_; }

 private:
  Milliseconds timeout_;
  std::chrono::steady_clock::time_point end_;
};

// "1.5 s", "1800 s"
inline std::string in_seconds(Milliseconds duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g s", static_cast<double>(duration.count()) / 1000.0);
  return text;
}

}  // namespace ddp::sdk
