// Time as the machines see it: values handed in from outside, never read from a clock.
#pragma once

#include <chrono>

namespace ddp::rendezvous {

using Duration = std::chrono::nanoseconds;

// Has no now(), so code that only knows this clock cannot read one.
struct MachineClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MachineClock>;
  static constexpr bool is_steady = true;
};

using Instant = MachineClock::time_point;

}  // namespace ddp::rendezvous
