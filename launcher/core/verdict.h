// The report at the end of a job: what happened first, what followed, what to do. Text only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/core/agent_events.h"
#include "launcher/core/hints.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

// What the verdict itself does not carry.
struct VerdictContext {
  std::int32_t workers_stopped = 0;  // on this node, because of the first cause
  std::int32_t max_restarts = 0;
  std::vector<EndCount> others_failed = {};  // on this node, beside the first cause
  HintContext hints = {};
};

// Lines for stderr, each with its newline, about 25 at most and the cause first; empty if there is
// nothing to say (all well).
[[nodiscard]] std::string verdict_text(const rendezvous::Verdict& verdict,
                                       const VerdictContext& context);

}  // namespace ddp::launcher
