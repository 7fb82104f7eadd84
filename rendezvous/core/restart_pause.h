// How long a job waits before it starts all workers again: not at all, unless they fail again and
// again at once.
#pragma once

#include <cstdint>

#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

class RestartPause {
 public:
  // A round that failed sooner is a quick failure; one that ran longer makes up for those before.
  static constexpr Duration kQuick = std::chrono::seconds(5);
  // So many in a row are followed by a restart at once; then the pauses begin and double.
  static constexpr std::int32_t kWithoutPause = 3;
  static constexpr Duration kFirst = std::chrono::milliseconds(100);

  explicit RestartPause(Duration longest) : longest_(longest) {}

  // A round has failed after it ran for that long, and another one will be started: when?
  [[nodiscard]] Duration after(Duration ran);
  // A round has ended for no fault of its workers.
  void forgive(Duration ran);

  [[nodiscard]] std::int32_t quick_failures() const { return quick_failures_; }

 private:
  Duration longest_;
  std::int32_t quick_failures_ = 0;  // in a row
};

}  // namespace ddp::rendezvous
