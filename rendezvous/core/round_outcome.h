// What becomes of a job after a round in which something went wrong: the first cause decides.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

struct DatedFailure {
  Failure failure;
  Instant happened;  // by the coordinator's clock
};

struct RestartBudget {
  std::int32_t used = 0;
  std::int32_t allowed = 0;
};

struct EndJob {
  Verdict verdict;
};
struct StartAgain {
  bool costs_restart = false;
};
using RoundOutcome = std::variant<EndJob, StartAgain>;

[[nodiscard]] bool is_worker_death(FailureKind kind);

// `failures` is not empty. A worker's death is paid from the budget, the loss of a node is not, and
// workers that died after a node was lost died of that. What no restart cures ends the job.
[[nodiscard]] RoundOutcome decide_outcome(std::vector<DatedFailure> failures, RestartBudget budget);

// The earliest of `failures`, or null. One that tells of a lost peer is never earlier than a cause.
[[nodiscard]] const DatedFailure* first_cause(const std::vector<DatedFailure>& failures);

// The exit code that this failure gives the job.
[[nodiscard]] std::int32_t exit_code_of(const Failure& failure);

}  // namespace ddp::rendezvous
