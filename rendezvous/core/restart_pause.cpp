#include "rendezvous/core/restart_pause.h"

#include <algorithm>

namespace ddp::rendezvous {

Duration RestartPause::after(Duration ran) {
  quick_failures_ = ran < kQuick ? quick_failures_ + 1 : 0;
  if (quick_failures_ <= kWithoutPause) return {};
  Duration pause = kFirst;
  for (std::int32_t i = kWithoutPause + 1; i < quick_failures_ && pause < longest_; ++i) pause *= 2;
  return std::min(pause, longest_);
}

void RestartPause::forgive(Duration ran) {
  if (ran >= kQuick) quick_failures_ = 0;
}

}  // namespace ddp::rendezvous
