// What must hold where workers live on after others were lost (--on-failure=notify).
#include <algorithm>

#include "tests/sim/checkers.h"

namespace ddp::sim {

using rendezvous::FailureKind;

void Checkers::published(const NodeId& node, const RoundId& round) {
  rounds_.at(round.number).told.insert(node);
}

// Unless a worker has failed that could have lived on, nobody is told to end.
void Checkers::check_end_was_needed(const RoundTruth& round) const {
  const bool needed =
      std::any_of(round.deaths.begin(), round.deaths.end(), [&round](const Death& failed) {
        if (failed.asked || failed.signal != 0) return false;
        return std::any_of(round.deaths.begin(), round.deaths.end(), [&failed](const Death& lost) {
          return !lost.asked && lost.rank != failed.rank && lost.when <= failed.when;
        });
      });
  check(needed || !interrupted_.empty(), "workers were told to end for a loss that they survive");
}

void Checkers::check_survived(const Verdict& verdict, const RoundTruth& last) const {
  check(!last.ended_well.empty(), "a job succeeded in which no worker has");
  const Death* first = nullptr;
  for (const auto& [rank, node] : last.spawned) {
    const auto died = std::find_if(last.deaths.begin(), last.deaths.end(),
                                   [rank = rank](const Death& d) { return d.rank == rank; });
    const bool lost = died != last.deaths.end() && !died->asked;
    check(lost || last.ended_well.count(rank) != 0 || is_lost(node, last.id.number),
          "a job succeeded though a worker has neither succeeded nor been lost");
    if (!lost || is_lost(node, last.id.number)) continue;
    check(verdict.failure.has_value(), "the verdict does not name a loss");
    if (first == nullptr || died->when < first->when) first = &*died;
  }
  const bool node_lost =
      std::any_of(last.placements.begin(), last.placements.end(),
                  [&](const auto& entry) { return is_lost(entry.first, last.id.number); });
  check(!verdict.failure || first != nullptr || node_lost, "a loss that never happened");
  if (scenario_.mood != Mood::calm || coordinator_paused_ || first == nullptr) return;
  const Duration on_its_way = 4 * scenario_.weather.longest_delay + milliseconds(100);
  for (const Death& death : last.deaths) {
    const bool failed = !death.asked && death.signal == 0;
    check(!failed || death.when <= first->when + on_its_way,
          "a job succeeded though a worker that lived on has failed");
  }
  for (const auto& [rank, when] : last.ended_well) {
    check(when <= first->when + on_its_way || last.told.count(last.spawned.at(rank)) != 0,
          "a worker that lived on was not told of the loss");
  }
}

}  // namespace ddp::sim
