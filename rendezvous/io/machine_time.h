// Where the machines' time comes from: the monotonic clock, as the Instant that core understands.
#pragma once

#include <chrono>

#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

[[nodiscard]] inline Instant machine_now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

[[nodiscard]] inline std::chrono::steady_clock::time_point on_steady_clock(Instant instant) {
  return std::chrono::steady_clock::time_point(instant.time_since_epoch());
}

}  // namespace ddp::rendezvous
