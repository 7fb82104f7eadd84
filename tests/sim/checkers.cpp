#include "tests/sim/checkers.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "launcher/core/worker_group.h"

namespace ddp::sim {

using rendezvous::FailureKind;

namespace {

// Of an identity, all but the first four digits name the host.
bool same_host(const NodeId& a, const NodeId& b) {
  return a.value.substr(4) == b.value.substr(4);
}

}  // namespace

void Checkers::check(bool holds, const char* promise) const {
  if (!holds) throw Violation(promise);
}

// ---- the coordinator's view of who is there --------------------------------------------------

void Checkers::node_attached(const NodeId& node) {
  const auto since = detached_since_.find(node);
  if (since != detached_since_.end() && world_.now() >= since->second + seconds(1)) lost(node);
  detached_since_.erase(node);
  check(!verdict_ || attached_once_.count(node) != 0, "a closed job took a new node");
  attached_once_.insert(node);
  attached_at_[node] = world_.now();
  if (!scenario_.fixed_ranks) return;
  for (const auto& [other, gone_since] : detached_since_) {
    if (same_host(other, node)) lost(other);  // it takes its place
  }
}

void Checkers::node_detached(const NodeId& node) {
  detached_since_.emplace(node, world_.now());
}

void Checkers::node_dropped(const NodeId& node) {
  check(scenario_.mood == Mood::rough || interrupted_.count(node) != 0,
        "a node was given up that could always be reached");
  lost(node);
  node_detached(node);
}

void Checkers::lost(const NodeId& node) {
  lost_in_round_[node] = newest();
  if (!rounds_.empty()) rounds_.rbegin()->second.lost_a_node = true;
}

bool Checkers::is_lost(const NodeId& node, std::uint64_t round) const {
  const auto lost_in = lost_in_round_.find(node);
  if (lost_in != lost_in_round_.end() && lost_in->second >= round) return true;
  const auto since = detached_since_.find(node);
  return since != detached_since_.end() && world_.now() >= since->second + seconds(1);
}

// ---- orders ----------------------------------------------------------------------------------

void Checkers::ordered(const NodeId& node, const Order& order) {
  if (const auto* run = std::get_if<rendezvous::Run>(&order)) run_ordered(node, run->placement);
  if (const auto* wait = std::get_if<rendezvous::Wait>(&order)) pause_ordered(*wait);
  if (const auto* close = std::get_if<rendezvous::Close>(&order)) verdict_seen(close->verdict);
  if (const auto* leave = std::get_if<rendezvous::Leave>(&order)) {
    verdict_seen(leave->verdict);
    const bool in_time = world_.now() < verdict_at_ + seconds(60);
    for (const NodeId& other : attached_once_) {
      // Those that were away meanwhile may be told later.
      const bool here = detached_since_.count(other) == 0 && refused_.count(other) == 0 &&
                        attached_at_.at(other) <= verdict_at_;
      check(!in_time || !here || knows_verdict_.count(other) != 0,
            "a node was told to leave before all knew the verdict");
    }
  }
}

void Checkers::run_ordered(const NodeId& node, const Placement& placement) {
  check(!verdict_, "a closed job runs again");
  check(placement.round.number >= newest(), "an old round is ordered beside a newer one");
  if (placement.round.number > newest()) round_begins(placement);
  RoundTruth& round = rounds_.at(placement.round.number);
  check(round.id == placement.round, "two rounds bear the same number");
  const Placement& first = round.placements.empty() ? placement : round.placements.begin()->second;
  check(first.world_size == placement.world_size &&
            first.group_world_size == placement.group_world_size &&
            first.restart_count == placement.restart_count,
        "the nodes of a round are told different things about it");
  const auto known = round.placements.find(node);
  if (known != round.placements.end()) {
    Placement without_master = placement;
    without_master.master = known->second.master;
    check(without_master == known->second, "the placement of a node changed within a round");
    check(!known->second.master || placement.master == known->second.master,
          "the store of a round moved");
    known->second.master = placement.master;
    return;
  }
  round.placements.emplace(node, placement);
  check_dense(round);
  const auto before = rounds_.find(placement.round.number - 1);
  if (before != rounds_.end()) check_stable(before->second, round);
}

void Checkers::round_begins(const Placement& placement) {
  const auto number = placement.round.number;
  check(number == newest() + 1, "a round number was left out");
  check(placement.restart_count <= scenario_.max_restarts, "more restarts than the budget allows");
  check(placement.group_world_size >= scenario_.limits.min &&
            placement.group_world_size <= scenario_.limits.max,
        "a round has fewer or more nodes than allowed");
  if (!rounds_.empty()) {
    const RoundTruth& last = rounds_.rbegin()->second;
    const std::int32_t used_before = last.placements.begin()->second.restart_count;
    const std::int32_t charged = placement.restart_count - used_before;
    const bool someone_died = std::any_of(last.deaths.begin(), last.deaths.end(),
                                          [](const Death& d) { return !d.asked; });
    bool node_lost = last.lost_a_node;
    for (const auto& [node, since] : detached_since_) node_lost |= is_lost(node, number - 1);
    check(charged == 0 || charged == 1, "one round cost more than one restart");
    check(charged == 0 || someone_died, "a restart was charged though no worker had failed");
    check(charged == 1 || node_lost, "a new round began for no reason");
    check_pause(last, charged == 1);
  }
  for (const auto& [node, ranks] : alive_) {
    for (const auto& [rank, round] : ranks) {
      check(is_lost(node, round.number),
            "a round began while workers of the last one were alive on a node that was not lost");
    }
  }
  rounds_[number].id = placement.round;
  rounds_[number].began = world_.now();
}

void Checkers::pause_ordered(const rendezvous::Wait& wait) {
  if (!wait.pausing) return;
  check(wait.remaining && *wait.remaining <= scenario_.restart_delay,
        "a pause before a restart is longer than allowed");
  check(!rounds_.empty() && rounds_.rbegin()->second.placements.begin()->second.restart_count >= 3,
        "one of the first restarts had to wait");
  pause_ends_ = world_.now() + *wait.remaining;
}

void Checkers::check_pause(const RoundTruth& last, bool charged) {
  check(world_.now() >= pause_ends_, "a round began during a pause");
  // When a round has failed is only as sure as messages are prompt.
  const bool sure = scenario_.mood == Mood::calm && !coordinator_paused_ && !scenario_.notify;
  const bool quick = std::any_of(last.deaths.begin(), last.deaths.end(), [&](const Death& death) {
    return !death.asked && death.when < last.began + seconds(4);
  });
  quick_failures_ = sure && charged && quick ? quick_failures_ + 1 : 0;
  if (quick_failures_ < 4) return;
  const Duration wanted = milliseconds(100) * (1 << std::min(quick_failures_ - 4, 10));
  check(world_.now() >= last.last_end + std::min(wanted, scenario_.restart_delay),
        "workers that fail again and again at once were started without a pause");
}

void Checkers::check_dense(const RoundTruth& round) const {
  const Placement& any = round.placements.begin()->second;
  std::map<std::int32_t, const Placement*> by_group_rank;
  for (const auto& [node, placement] : round.placements) {
    by_group_rank.emplace(placement.group_rank.value, &placement);
  }
  check(by_group_rank.size() == round.placements.size(), "two nodes have one group rank");
  check(by_group_rank.begin()->first >= 0 && by_group_rank.rbegin()->first < any.group_world_size,
        "a group rank is out of range");
  std::int32_t last_first = -1;
  for (const auto& [group_rank, placement] : by_group_rank) {
    check(placement->first_rank.value > last_first, "ranks do not follow group ranks");
    check(placement->first_rank.value < placement->world_size, "a rank is out of range");
    check((group_rank == 0) == (placement->first_rank.value == 0), "rank 0 is not on node 0");
    last_first = placement->first_rank.value;
  }
}

void Checkers::check_stable(const RoundTruth& before, const RoundTruth& after) const {
  for (const auto& [node, placement] : after.placements) {
    const auto old = before.placements.find(node);
    if (old == before.placements.end() || is_lost(node, before.id.number)) continue;
    check(old->second.group_rank.value != 0 || placement.group_rank.value == 0 ||
              scenario_.fixed_ranks,
          "rank 0 moved though its node lives");
    for (const auto& [other, other_placement] : after.placements) {
      const auto other_old = before.placements.find(other);
      if (other_old == before.placements.end() || is_lost(other, before.id.number)) continue;
      check((old->second.group_rank < other_old->second.group_rank) ==
                (placement.group_rank < other_placement.group_rank),
            "survivors changed their order");
    }
  }
}

// ---- the verdict -----------------------------------------------------------------------------

void Checkers::verdict_seen(const Verdict& verdict) {
  if (verdict_) {
    check(*verdict_ == verdict, "the verdict changed");
    return;
  }
  verdict_ = verdict;
  verdict_at_ = world_.now();
  check_verdict(verdict);
}

void Checkers::check_verdict(const Verdict& verdict) const {
  check(verdict.restarts_used <= scenario_.max_restarts, "the verdict tells of too many restarts");
  if (verdict.exit_code == 0 && scenario_.notify) {
    check_survived(verdict, rounds_.rbegin()->second);
  } else if (verdict.exit_code == 0) {
    const bool succeeded = std::any_of(rounds_.begin(), rounds_.end(), [](const auto& entry) {
      const RoundTruth& round = entry.second;
      return round.succeeded == round.placements.begin()->second.world_size;
    });
    check(succeeded, "the job is said to have succeeded, but not all of its workers have");
  } else if (verdict.failure) {
    check_failure(*verdict.failure, rounds_.empty() ? RoundTruth{} : rounds_.rbegin()->second);
    const bool worker_failed = verdict.failure->kind == FailureKind::worker_exited ||
                               verdict.failure->kind == FailureKind::worker_signaled;
    check(!worker_failed || verdict.restarts_used == scenario_.max_restarts,
          "the job gave up with restarts left");
  } else {
    check(verdict.exit_code == (job_ran() ? rendezvous::exit_code::kNodeLost
                                          : rendezvous::exit_code::kRendezvousTimeout),
          "a job without a failure ended with the wrong code");
  }
}

void Checkers::check_failure(const rendezvous::Failure& failure, const RoundTruth& last) const {
  const std::int32_t code = verdict_->exit_code;
  switch (failure.kind) {
    case FailureKind::interrupted: {
      const bool happened =
          std::any_of(interrupted_.begin(), interrupted_.end(),
                      [&](const auto& entry) { return entry.second == failure.signal; });
      check(happened && code == 128 + failure.signal, "an interruption that never happened");
      return;
    }
    case FailureKind::spawn_failed:
    case FailureKind::launcher_failed:
      check(injected_codes_.count(code) != 0, "a launcher's failure that never happened");
      return;
    case FailureKind::node_lost:
      check(false, "the loss of a node alone ended the job");
      return;
    case FailureKind::worker_exited:
    case FailureKind::worker_signaled:
      break;
  }
  const auto blamed = std::find_if(last.deaths.begin(), last.deaths.end(),
                                   [&](const Death& d) { return d.rank == failure.rank; });
  check(blamed != last.deaths.end(), "a worker is blamed that did not fail");
  check(code == (blamed->signal != 0 ? 128 + blamed->signal : blamed->exit_code),
        "the exit code is not the first cause's");
  check(failure.secondary == blamed->secondary, "what a worker said of its death was misread");
  check_blame(*blamed, last);
}

void Checkers::check_blame(const Death& blamed, const RoundTruth& last) const {
  const bool any_consequence =
      std::any_of(last.deaths.begin(), last.deaths.end(),
                  [](const Death& death) { return death.secondary && !death.asked; });
  const bool crashed = blamed.signal == SIGSEGV;
  check(!blamed.asked || (any_consequence && crashed),
        "a worker is blamed that did not fail before it was told to end");
  for (const Death& death : last.deaths) {
    // What an agent has heard of before it stops its workers, it can tell.
    const bool told =
        death.heard && !is_lost(death.node, last.id.number) && interrupted_.count(death.node) == 0;
    check(!blamed.secondary || death.secondary || !told,
          "a consequence is blamed though a cause was known");
  }
  // The order of events is only as sure as their messages are prompt.
  if (scenario_.mood != Mood::calm || coordinator_paused_ || blamed.asked) return;
  for (const Death& death : last.deaths) {
    if (death.asked || death.secondary != blamed.secondary) continue;
    check(blamed.when <= death.when + scenario_.weather.longest_delay + milliseconds(2),
          "the blamed worker was not the first to fail");
  }
}

void Checkers::refused(const NodeId& node) {
  refused_.insert(node);
  // A job that all have left before its first round is forgotten, and they with it.
  const bool had_a_part = std::any_of(rounds_.begin(), rounds_.end(), [&](const auto& entry) {
    return entry.second.placements.count(node) != 0;
  });
  const bool never_here = attached_once_.count(node) == 0 || (!had_a_part && is_lost(node, 0));
  const bool too_late = verdict_ && never_here;
  // Its place is still held by the agent before it, whose loss was not noticed yet.
  const bool replaced = scenario_.fixed_ranks && scenario_.mood == Mood::rough;
  check(too_late || replaced || interrupted_.count(node) != 0 || misfits_.count(node) != 0,
        "a node was refused that should have been let in");
}

// ---- the nodes -------------------------------------------------------------------------------

void Checkers::agent_started(const NodeId& node, bool misfit) {
  if (misfit) misfits_.insert(node);
}

void Checkers::interrupted(const NodeId& node, std::int32_t signal) {
  interrupted_.emplace(node, signal);  // the first one counts
}

void Checkers::store_opened(const RoundId& round, std::uint16_t port) {
  const auto found = rounds_.find(round.number);
  if (found != rounds_.end() && found->second.id == round) found->second.store_port = port;
}

void Checkers::spawned(const NodeId& node, const RoundId& round, const launcher::RoundPlan& plan) {
  check(knows_verdict_.count(node) == 0, "workers were started after the verdict was known");
  const auto found = rounds_.find(round.number);
  check(found != rounds_.end() && found->second.id == round, "workers of a round never ordered");
  RoundTruth& truth = found->second;
  const auto placed = truth.placements.find(node);
  check(placed != truth.placements.end(), "workers on a node that has no part in the round");
  check(alive_[node].empty(), "workers of two rounds on one node");
  for (const launcher::WorkerPlan& worker : plan.workers) {
    const auto& environment = plan.environment;
    const std::int32_t rank = std::stoi(worker.environment.at("RANK"));
    check(rank == worker.rank.value &&
              rank == placed->second.first_rank.value + worker.local_rank.value,
          "a worker has another rank than its node was given");
    check(truth.spawned.emplace(rank, node).second, "a rank was started twice in one round");
    check(rank < placed->second.world_size &&
              environment.at("WORLD_SIZE") == std::to_string(placed->second.world_size),
          "the world size does not fit");
    check(truth.store_port && environment.at("MASTER_PORT") == std::to_string(*truth.store_port),
          "a worker is sent to the store of another round");
    alive_[node].emplace(rank, round);
  }
}

void Checkers::worker_ended(const NodeId& node, const Death& death) {
  alive_[node].erase(death.rank);
  if (alive_[node].empty()) alive_.erase(node);
  RoundTruth& truth = rounds_.at(death.round.number);
  truth.last_end = world_.now();
  const bool well = death.exit_code == 0 && death.signal == 0;
  if (well && !death.asked) ++truth.succeeded;
  if (well) truth.ended_well.emplace(death.rank, world_.now());
  if (well) return;
  truth.deaths.push_back(death);
  truth.deaths.back().node = node;
}

void Checkers::told_to_end(const RoundId& round) {
  if (scenario_.mood != Mood::calm || verdict_) return;
  if (scenario_.notify) return check_end_was_needed(rounds_.at(round.number));
  const std::vector<Death>& deaths = rounds_.at(round.number).deaths;
  const bool all_consequences =
      !deaths.empty() && std::all_of(deaths.begin(), deaths.end(), [](const Death& death) {
        return death.secondary && !death.asked;
      });
  check(!all_consequences ||
            world_.now() >= deaths.front().when + launcher::WorkerGroup::kCulpritPatience,
        "workers were stopped for a consequence before its cause had time to show");
}

void Checkers::death_heard(const NodeId& node, const RoundId& round, std::int32_t rank) {
  for (Death& death : rounds_.at(round.number).deaths) {
    if (death.node == node && death.rank == rank) death.heard = true;
  }
}

void Checkers::received(const NodeId& node, const Order& order) {
  if (std::holds_alternative<rendezvous::Close>(order) ||
      std::holds_alternative<rendezvous::Leave>(order)) {
    knows_verdict_.insert(node);
  }
}

void Checkers::agent_exited(const Farewell& farewell) {
  const NodeId& node = farewell.node;
  check(alive_.count(node) == 0, "an agent exited and left workers alive");
  if (farewell.verdict) {
    check(verdict_ && *farewell.verdict == *verdict_, "an agent exited with another verdict");
    check(farewell.exit_code == verdict_->exit_code, "an exit code that is not the verdict's");
    check(!farewell.misfit, "a node with other terms was let into the job");
    return;
  }
  if (farewell.interrupted) {
    check(farewell.exit_code == 128 + interrupted_.at(node), "the code of an interrupted agent");
  } else if (farewell.refused) {
    check(refused_.count(node) != 0 && farewell.exit_code == rendezvous::exit_code::kRefused,
          "the code of a refused agent");
  } else {
    check(
        farewell.lost_coordinator && farewell.exit_code == rendezvous::exit_code::kCoordinatorLost,
        "an agent exited without a reason");
    check(coordinator_dead_ || disturbed_.count(node) != 0,
          "an agent gave up a coordinator that could be reached");
    check(!knows_verdict_.count(node), "an agent forgot the verdict that it held");
  }
}

}  // namespace ddp::sim
