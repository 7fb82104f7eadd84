// What a job makes of deaths: the failures of a round, and the losses that the others may survive.
#include <algorithm>
#include <utility>

#include "rendezvous/core/job.h"

namespace ddp::rendezvous {

bool Job::note_failure(Round& round, Member& member, const Failure& failure, Instant now) {
  const bool interrupted = failure.kind == FailureKind::interrupted;
  return note(round.failures, interrupted ? member.interruption : member.failure,
              {failure, std::max(now - failure.age, round.started)});
}

bool Job::note_loss(Round& round, Member& member, const Failure& loss, Instant now) {
  return note(round.losses, member.loss, {loss, std::max(now - loss.age, round.started)});
}

// The first one of each node counts, unless the node has learnt better about its workers' deaths,
// and whether it was told to end. Repeated, it was never later than any of its reports says: one of
// them may have been on its way for long. No sender can date it back to before the round.
bool Job::note(std::vector<DatedFailure>& list, std::optional<std::size_t>& place,
               DatedFailure told) {
  if (!place) {
    place = list.size();
    list.push_back(std::move(told));
    return true;
  }
  DatedFailure& known = list[*place];
  if (told.failure.rank == known.failure.rank && told.failure.kind == known.failure.kind) {
    known.happened = std::min(known.happened, told.happened);
  }
  told.failure.age = known.failure.age;
  const bool better = told.failure != known.failure && is_worker_death(told.failure.kind) &&
                      is_worker_death(known.failure.kind) &&
                      (known.failure.secondary || !told.failure.secondary);
  if (better && told.failure.rank != known.failure.rank) known.happened = told.happened;
  if (better) known.failure = std::move(told.failure);
  return better;
}

bool Job::goes_on_without(const Member& member) const {
  return member.lost && std::holds_alternative<Running>(phase_);
}

// The round's store lives on group rank 0.
bool Job::can_survive_loss_of(const Member& member) const {
  return terms_.notify && std::holds_alternative<Running>(phase_) &&
         member.placement.group_rank.value != 0;
}

bool Job::is_lost_with_its_launcher(const Member& member, const NodeStatus& status) const {
  return status.failure && status.failure->kind == FailureKind::launcher_failed &&
         can_survive_loss_of(member);
}

// Only the first death of a round may be a worker that ended by itself, with a code other than 0:
// whoever does so later has survived and failed. Two nodes can each believe that theirs was first.
// What was lost before is then the cause of the failure, and so it is if nobody is left.
void Job::judge_losses(Round& round, Instant now) {
  if (round.losses.empty()) return;
  const auto first = std::min_element(
      round.losses.begin(), round.losses.end(),
      [](const DatedFailure& a, const DatedFailure& b) { return a.happened < b.happened; });
  for (auto loss = round.losses.begin(); loss != round.losses.end(); ++loss) {
    if (loss != first && loss->failure.kind == FailureKind::worker_exited) {
      round.failures.push_back(*loss);
    }
  }
  const bool nobody_is_left =
      std::all_of(round.members.begin(), round.members.end(), [](const auto& entry) {
        const Member& member = entry.second;
        return member.lost || (member.succeeded && member.lost_workers >= member.workers);
      });
  const DatedFailure* failure = first_cause(round.failures);
  if (!nobody_is_left && (failure == nullptr || !is_worker_death(failure->failure.kind))) return;
  round.failed_at = now;
  round.failures.insert(round.failures.end(), round.losses.begin(), round.losses.end());
}

bool Job::all_have_ended(const Round& round) {
  return std::all_of(round.members.begin(), round.members.end(),
                     [](const auto& entry) { return entry.second.succeeded || entry.second.lost; });
}

}  // namespace ddp::rendezvous
