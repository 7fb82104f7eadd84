#include "launcher/core/agent.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "launcher/core/failure_text.h"

namespace ddp::launcher {

using rendezvous::FailureKind;
using rendezvous::NodePhase;
using Stage = WorkerGroup::Stage;

Agent::Agent(LaunchConfig config, std::string host, rendezvous::NodeId node,
             Environment base_environment)
    : config_(std::move(config)),
      host_(std::move(host)),
      node_(std::move(node)),
      base_environment_(std::move(base_environment)) {}

AgentEffects Agent::handle(const AgentEvent& event, Instant now) {
  AgentEffects effects;
  if (!exited_) {
    std::visit([&](const auto& happened) { on(happened, now, effects); }, event);
    reconcile(now, effects);
  } else {
    after_exit(event, now, effects);
  }
  return effects;
}

AgentEffects Agent::on_time(Instant now) {
  AgentEffects effects;
  if (!exited_) {
    if (group_) {
      group_->on_time(now, effects);
    }
    if (waits_in_silence() && now >= *waiting_since_ + kQuietWait) {
      say_waiting(now, effects);
    }
    reconcile(now, effects);
  }
  return effects;
}

std::optional<Instant> Agent::next_deadline() const {
  if (exited_) {
    return std::nullopt;
  }
  if (gone_since_) {
    return std::max(*gone_since_, last_order_.value_or(*gone_since_)) + ending_->patience;
  }
  std::optional<Instant> earliest = group_ ? group_->next_deadline() : std::nullopt;
  if (waits_in_silence()) {
    const Instant speak_at = *waiting_since_ + kQuietWait;
    earliest = earliest ? std::min(*earliest, speak_at) : speak_at;
  }
  return earliest;
}

// ---- what happened ---------------------------------------------------------------------------

void Agent::on(const OrderReceived& event, Instant now, AgentEffects& effects) {
  last_order_ = now;
  std::visit([&](const auto& order) { obey(order, now, effects); }, event.order);
}

void Agent::on(const CoordinatorLost& event, Instant now, AgentEffects&) {
  if (!ending_) {
    ending_ = Ending{event.exit_code, event.reason, {}, 0, now};
  }
  ending_->patience = {};  // nobody is left to be waited for
}

void Agent::on(const CoordinatorSilent& event, Instant now, AgentEffects& effects) {
  wait_for(event.reason, now, effects);
}

void Agent::on(const StoreOpened& event, Instant, AgentEffects&) {
  if (in_round(event.round) && store_requested_) {
    store_ = event.endpoint;
  }
}

void Agent::on(const StoreFailed& event, Instant now, AgentEffects& effects) {
  if (!in_round(event.round) || own_failure_ || group_->stage() != Stage::placed) {
    return;
  }
  Failure failure;
  failure.kind = FailureKind::launcher_failed;
  failure.host = host_;
  failure.exit_code = rendezvous::exit_code::kLauncherFailed;
  failure.message = event.reason;
  own_failure_ = DatedFailure{failure, now};
  group_->stop(SIGTERM, now, effects);
}

void Agent::on(const WorkersSpawned& event, Instant now, AgentEffects& effects) {
  if (in_round(event.round)) {
    group_->spawned(event.pids, now, effects);
  }
}

void Agent::on(const SpawnFailed& event, Instant now, AgentEffects& effects) {
  if (in_round(event.round)) {
    group_->spawn_failed(event, now, effects);
  }
}

void Agent::on(const WorkersExited& event, Instant now, AgentEffects& effects) {
  if (in_round(event.round)) {
    group_->exited(event.exits, now, effects);
  }
}

void Agent::on(const RemainsGone& event, Instant, AgentEffects&) {
  if (in_round(event.round)) {
    group_->remains_gone();
  }
}

void Agent::on(const GuardianLost&, Instant now, AgentEffects& effects) {
  const std::string reason = "its guardian process is gone (killed?)";
  if (!own_failure_ && !verdict_) {
    Failure failure;
    failure.kind = FailureKind::launcher_failed;
    failure.host = host_;
    failure.exit_code = rendezvous::exit_code::kLauncherFailed;
    failure.message = reason;
    own_failure_ = DatedFailure{failure, now};
  }
  ending_ = Ending{rendezvous::exit_code::kLauncherFailed, reason, {}, SIGKILL, now};
  next_.reset();
  if (group_) {
    group_->kill(now, effects);
  }
  effects.emplace_back(Hurry{});
}

// ---- the difference --------------------------------------------------------------------------

bool Agent::in_round(const RoundId& round) const {
  return group_ && group_->placement().round == round;
}

bool Agent::nothing_left() const {
  return !group_ || group_->stage() == Stage::gone;
}

bool Agent::leaving() const {
  return verdict_ || ending_;
}

void Agent::reconcile(Instant now, AgentEffects& effects) {
  if (group_ && (leaving() || next_)) {
    group_->stop(SIGTERM, now, effects);
  }
  if (next_ && nothing_left() && (next_->stopped || !leaving())) {
    enter_next_round(now, effects);
  }
  if (group_ && group_->stage() == Stage::placed) {
    prepare_round(effects);
  }
  if (group_ && group_->failure() != nullptr) {
    note_cause(group_->failure()->failure);
  }
  report(now, effects);
  leave_if_done(now, effects);
}

void Agent::enter_next_round(Instant now, AgentEffects& effects) {
  const NextRound next = *std::exchange(next_, std::nullopt);
  store_.reset();
  store_requested_ = false;
  if (!ending_) {
    own_failure_.reset();
  }
  stop_waiting();
  if (!next.stopped) {
    say_restart(next.placement, effects);
  }
  group_.emplace(next.placement, GroupSite{host_, config_.workers, config_.shutdown_timeout,
                                           config_.on_failure == OnFailure::notify});
  if (next.stopped) {
    group_->stop(SIGTERM, now, effects);
  }
  if (store_held_ && (next.stopped || next.placement.group_rank.value != 0)) {
    store_held_ = false;
    effects.emplace_back(CloseStore{});
  }
}

// What tells of a cause elsewhere is only worth telling where nothing better is known.
void Agent::note_cause(const Failure& failure) {
  if (!last_failure_ || last_failure_->secondary || !failure.secondary) {
    last_failure_ = failure;
  }
}

void Agent::say_restart(const Placement& placement, AgentEffects& effects) {
  if (placement.restart_count > restart_count_) {
    effects.emplace_back(
        Say{Say::Level::warning,
            "restart " + std::to_string(placement.restart_count) + " of " +
                std::to_string(placement.max_restarts) +
                (last_failure_ ? ": " + describe_failure(*last_failure_) : std::string())});
  } else if (group_ && group_->has_started()) {
    effects.emplace_back(Say{
        Say::Level::warning,
        "all workers start again, on " + std::to_string(placement.group_world_size) +
            (placement.group_world_size == 1 ? " node" : " nodes") + ", which uses up no restart" +
            (last_failure_ ? ": " + describe_failure(*last_failure_) : std::string())});
  }
  restart_count_ = placement.restart_count;
  last_failure_.reset();
}

void Agent::prepare_round(AgentEffects& effects) {
  const Placement& placement = group_->placement();
  const bool owns_store = placement.group_rank.value == 0;
  if (owns_store && !store_requested_) {
    store_requested_ = true;
    store_held_ = true;
    effects.emplace_back(OpenStore{placement.round});
  }
  if (placement.master && (!owns_store || store_) && !suspended_) {
    effects.emplace_back(
        Say{Say::Level::note, "round " + std::to_string(placement.round.number) + ": starting " +
                                  std::to_string(config_.workers) + " of " +
                                  std::to_string(placement.world_size) + " workers, from rank " +
                                  std::to_string(placement.first_rank.value) + ", store at " +
                                  rendezvous::text_of(*placement.master)});
    group_->start(plan_workers(config_, node_, placement, base_environment_), effects);
  }
}

NodeStatus Agent::status(Instant now) const {
  NodeStatus status;
  const DatedFailure* dated = own_failure_ ? &*own_failure_ : group_ ? group_->failure() : nullptr;
  if (dated != nullptr) {
    status.failure = dated->failure;
    status.failure->age = now - dated->at;
  }
  status.verdict_acknowledged = verdict_ && nothing_left();
  if (!group_) {
    return status;
  }
  if (const DatedFailure* loss = group_->loss()) {
    status.loss = loss->failure;
    status.loss->age = now - loss->at;
  }
  status.lost_workers = group_->lost_count();
  status.round = group_->placement().round;
  status.store = store_;
  switch (group_->stage()) {
    case Stage::placed:
    case Stage::spawning:
      status.phase = NodePhase::placed;
      break;
    case Stage::succeeded:
      status.phase = NodePhase::succeeded;
      break;
    case Stage::gone:
      status.phase = NodePhase::stopped;
      break;
    case Stage::running:
    case Stage::sweeping:
      status.phase = status.failure          ? NodePhase::failed
                     : group_->stop_wanted() ? NodePhase::stopping
                                             : NodePhase::running;
      break;
  }
  return status;
}

void Agent::report(Instant now, AgentEffects& effects) {
  NodeStatus current = status(now);
  NodeStatus ageless = current;
  if (ageless.failure) {
    ageless.failure->age = {};
  }
  if (ageless.loss) {
    ageless.loss->age = {};
  }
  if (ageless != reported_) {
    reported_ = std::move(ageless);
    effects.emplace_back(ReportStatus{std::move(current)});
  }
}

void Agent::leave_if_done(Instant now, AgentEffects& effects) {
  if (!nothing_left()) {
    return;
  }
  if (told_to_leave_) {
    exit(effects);
    return;
  }
  if (!ending_) {
    return;
  }
  if (!gone_since_) {
    gone_since_ = now;
  }
  // While the coordinator still talks to us the others are being stopped, and it may live here.
  if (now >= *next_deadline()) {
    exit(effects);
  }
}

std::vector<EndCount> Agent::others_failed() const {
  std::vector<EndCount> ends = group_->failed_ends();
  const DatedFailure* const own = group_->failure() != nullptr ? group_->failure() : group_->loss();
  if (!verdict_ || !verdict_->failure || own == nullptr ||
      verdict_->failure->pid != own->failure.pid || verdict_->failure->rank != own->failure.rank) {
    return ends;
  }
  const auto first = std::find_if(ends.begin(), ends.end(), [own](const EndCount& end) {
    return end.exit_code == own->failure.exit_code && end.signal == own->failure.signal;
  });
  if (first != ends.end() && --first->count == 0) {
    ends.erase(first);
  }
  return ends;
}

void Agent::exit(AgentEffects& effects) {
  if (suspended_) {
    effects.emplace_back(ContinueGuardian{});
  }
  if (store_held_) {
    effects.emplace_back(CloseStore{});
  }
  if (!verdict_ && !ending_->reason.empty()) {
    effects.emplace_back(Say{Say::Level::error, ending_->reason});
  }
  ExitAgent exit{verdict_ ? verdict_->exit_code : ending_->exit_code, verdict_};
  if (!verdict_) {
    exit.reason = ending_->reason;
  }
  if (group_) {
    exit.workers_stopped = group_->stopped_count();
    exit.others_failed = others_failed();
  }
  effects.emplace_back(std::move(exit));
  exited_ = true;
}

}  // namespace ddp::launcher
