#include "rendezvous/core/round_outcome.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

// Another round would end the same way, or was not wanted.
bool is_final(FailureKind kind) {
  return !is_worker_death(kind) && kind != FailureKind::node_lost;
}

std::string reason_of(const Failure& failure, RestartBudget budget) {
  const std::string host = failure.host.empty() ? "a node" : "host " + failure.host;
  switch (failure.kind) {
    case FailureKind::worker_exited:
    case FailureKind::worker_signaled:
      if (budget.allowed == 0) return "a worker failed on " + host;
      return "a worker failed on " + host + " and no restart is left (" +
             std::to_string(budget.used) + " of " + std::to_string(budget.allowed) + " used)";
    case FailureKind::spawn_failed:
      return "a worker could not be started on " + host;
    case FailureKind::interrupted:
      return "the launcher on " + host + " was told to stop (signal " +
             std::to_string(failure.signal) + ")";
    case FailureKind::node_lost:
      return host + " was lost";
    case FailureKind::launcher_failed:
      return "the launcher on " + host + " could not do its part";
  }
  return {};
}

// A batch system signals every process of a job: a worker may die of that before its launcher has
// acted on it.
bool died_of(const DatedFailure& death, const DatedFailure& interruption) {
  constexpr Duration kSameMoment = std::chrono::seconds(1);
  return death.failure.kind == FailureKind::worker_signaled &&
         interruption.failure.kind == FailureKind::interrupted &&
         death.failure.signal == interruption.failure.signal &&
         interruption.happened - death.happened < kSameMoment;
}

// What died of a lost peer by its own words didn't begin it, if anything else did. That somebody
// asked for an end is no such beginning: there only the time counts.
class Earlier {
 public:
  explicit Earlier(const std::vector<DatedFailure>& failures)
      : something_began_(std::any_of(failures.begin(), failures.end(), [](const DatedFailure& f) {
          return !f.failure.secondary && f.failure.kind != FailureKind::interrupted;
        })) {}

  bool operator()(const DatedFailure& a, const DatedFailure& b) const {
    return std::pair(something_began_ && a.failure.secondary, a.happened) <
           std::pair(something_began_ && b.failure.secondary, b.happened);
  }

 private:
  bool something_began_;
};

EndJob end_with(const Failure& failure, RestartBudget budget) {
  return EndJob{Verdict{exit_code_of(failure), reason_of(failure, budget), failure, budget.used}};
}

}  // namespace

bool is_worker_death(FailureKind kind) {
  return kind == FailureKind::worker_exited || kind == FailureKind::worker_signaled;
}

RoundOutcome decide_outcome(std::vector<DatedFailure> failures, RestartBudget budget) {
  DDP_ASSERT(!failures.empty());
  std::stable_sort(failures.begin(), failures.end(), Earlier(failures));
  const Failure& first = failures.front().failure;
  for (const DatedFailure& dated : failures) {
    if (died_of(failures.front(), dated)) return end_with(dated.failure, budget);
  }
  const bool costs_restart = is_worker_death(first.kind);
  if (costs_restart && budget.used >= budget.allowed) return end_with(first, budget);
  for (const DatedFailure& dated : failures) {
    if (is_final(dated.failure.kind)) return end_with(dated.failure, budget);
  }
  return StartAgain{costs_restart};
}

const DatedFailure* first_cause(const std::vector<DatedFailure>& failures) {
  const auto first = std::min_element(failures.begin(), failures.end(), Earlier(failures));
  return first == failures.end() ? nullptr : &*first;
}

// No process ends with more than 255, and 256 would look like success to a shell.
std::int32_t exit_code_of(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::worker_exited:
    case FailureKind::spawn_failed:
      if (failure.exit_code <= 0 || failure.exit_code > 255) break;
      return failure.exit_code;
    case FailureKind::worker_signaled:
    case FailureKind::interrupted:
      if (failure.signal <= 0 || failure.signal > 127) break;
      return exit_code::kSignalBase + failure.signal;
    case FailureKind::node_lost:
      return exit_code::kNodeLost;
    case FailureKind::launcher_failed:
      break;
  }
  return exit_code::kLauncherFailed;
}

}  // namespace ddp::rendezvous
