// The report at the end of a job: what happened first, what followed, what to do. Text only.
#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

// What the verdict itself does not carry.
struct VerdictContext {
  std::int32_t workers_stopped = 0;  // on this node, because of the first cause
  std::int32_t max_restarts = 0;
};

// Lines for stderr, each with its newline; empty if there is nothing to say (all well).
[[nodiscard]] std::string verdict_text(const rendezvous::Verdict& verdict,
                                       const VerdictContext& context);

}  // namespace ddp::launcher
