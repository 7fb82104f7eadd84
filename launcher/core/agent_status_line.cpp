// What the agent waits for, in a few words.
#include "launcher/core/agent.h"

namespace ddp::launcher {

std::string Agent::status_line(Instant) const {
  if (leaving() || waiting_for_.empty()) {
    return {};
  }
  return waiting_for_;
}

}  // namespace ddp::launcher
