#include "launcher/core/worker_group.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "launcher/core/evidence.h"
#include "launcher/core/failure_text.h"
#include "launcher/core/signal_names.h"

namespace ddp::launcher {

using rendezvous::FailureKind;

namespace {

constexpr const char* kCannotBeKilled =
    " cannot be killed (waiting in the kernel, state D, or run as another user?): the job goes on "
    "without waiting for it";

}  // namespace

WorkerGroup::WorkerGroup(Placement placement, GroupSite site)
    : placement_(std::move(placement)), site_(std::move(site)), ladder_(site_.grace) {}

void WorkerGroup::learn_master(const Endpoint& master) {
  if (stage_ == Stage::placed) {
    placement_.master = master;
  }
}

void WorkerGroup::start(RoundPlan plan, AgentEffects& effects) {
  workers_.assign(plan.workers.size(), Worker{});
  stage_ = Stage::spawning;
  effects.emplace_back(SpawnWorkers{placement_, std::move(plan)});
}

void WorkerGroup::stop(std::int32_t signal, Instant now, AgentEffects& effects, bool consequence) {
  if (stop_signal_) {
    return;
  }
  stop_signal_ = signal;
  culprit_until_.reset();
  deaths_.stop_begins(now, consequence);
  advance(now, effects);
}

void WorkerGroup::forward(std::int32_t signal, Instant now, AgentEffects& effects) {
  if (climbing_) {
    climb(ladder_.begin(alive(), signal, now), now, effects);
    resume(now, effects);
  }
  stop(signal, now, effects);
}

void WorkerGroup::kill(Instant now, AgentEffects& effects) {
  kill_wanted_ = true;
  stop(SIGKILL, now, effects);
  if (climbing_) {
    climb(ladder_.hurry(), now, effects);
  }
  kill_remains(effects);
}

void WorkerGroup::pause(Instant now, AgentEffects& effects) {
  if (paused_ || (stage_ != Stage::spawning && stage_ != Stage::running)) {
    return;
  }
  paused_ = true;
  paused_since_ = now;
  ladder_.pause(now);
  effects.emplace_back(PauseWorkers{});
}

void WorkerGroup::resume(Instant now, AgentEffects& effects) {
  if (!paused_) {
    return;
  }
  paused_ = false;
  if (culprit_until_) {
    *culprit_until_ += now - paused_since_;
  }
  ladder_.resume(now);
  effects.emplace_back(ResumeWorkers{});
}

void WorkerGroup::publish(const Failure& failure, AgentEffects& effects) {
  if (published_ || stage_ == Stage::gone) {
    return;
  }
  published_ = true;
  effects.emplace_back(PublishDeath{failure});
}

void WorkerGroup::learn_loss(const Failure& loss, AgentEffects& effects) {
  if (!loss_elsewhere_ && !published_) {
    say_lost(loss, effects);
  }
  loss_elsewhere_ = loss;
  publish(loss, effects);
}

void WorkerGroup::spawned(const std::vector<std::int64_t>& pids, Instant now,
                          AgentEffects& effects) {
  if (stage_ != Stage::spawning) {
    return;
  }
  for (std::size_t i = 0; i < workers_.size() && i < pids.size(); ++i) {
    workers_[i].pid = pids[i];
  }
  stage_ = Stage::running;
  started_ = now;
  advance(now, effects);
}

void WorkerGroup::spawn_failed(const SpawnFailed& event, Instant now, AgentEffects& effects) {
  if (stage_ != Stage::spawning) {
    return;
  }
  for (Worker& worker : workers_) {
    worker.alive = false;
  }
  stage_ = Stage::running;
  for (const std::int64_t pid : event.not_killed) {
    effects.emplace_back(Say{Say::Level::error, "the worker with pid " + std::to_string(pid) +
                                                    " on " + site_.host + kCannotBeKilled});
  }
  Death death;
  death.failure.kind = FailureKind::spawn_failed;
  death.failure.host = site_.host;
  death.failure.local_rank = event.local_rank.value;
  death.failure.rank = placement_.first_rank.value + event.local_rank.value;
  death.failure.exit_code = event.exit_code;
  death.failure.message = event.reason;
  deaths_.add(std::move(death), now);
  failed_ = failed_ || !stop_signal_;
  act_on_deaths(now, effects);
  advance(now, effects);
}

void WorkerGroup::exited(const std::vector<WorkerExit>& exits, Instant now, AgentEffects& effects) {
  if (stage_ != Stage::spawning && stage_ != Stage::running) {
    return;
  }
  for (const WorkerExit& exit : exits) {
    note_exit(exit, now);
  }
  act_on_deaths(now, effects);
  advance(now, effects);
}

void WorkerGroup::note_exit(const WorkerExit& exit, Instant now) {
  const auto index = static_cast<std::size_t>(exit.local_rank.value);
  if (exit.local_rank.value < 0 || index >= workers_.size() || !workers_[index].alive) {
    return;
  }
  workers_[index].alive = false;
  last_end_ = now;
  ladder_.exited(exit.local_rank);
  const bool as_asked = is_as_asked(exit);
  if (exit.signal == 0 && exit.exit_code == 0) {
    stopped_count_ += as_asked ? 1 : 0;
    return;
  }
  Failure failure = failure_of(exit, now);
  // Any code may be a program's way to obey.
  if (as_asked || (climbing_ && exit.signal == 0 && !failure.secondary)) {
    ++stopped_count_;
  } else {
    note_failed(exit);
  }
  if (!stop_signal_ && is_loss(failure)) {
    new_losses_.push_back(failure);
  } else if (!stop_signal_) {
    failed_ = true;
  }
  deaths_.add(Death{std::move(failure), exit.failed_at, exit.told_at, as_asked}, now);
}

bool WorkerGroup::is_as_asked(const WorkerExit& exit) const {
  if (exit.signal == 0) {
    return climbing_ && exit.exit_code == 0;
  }
  return std::find(sent_.begin(), sent_.end(), exit.signal) != sent_.end();
}

void WorkerGroup::note_failed(const WorkerExit& exit) {
  const auto known =
      std::find_if(failed_ends_.begin(), failed_ends_.end(), [&exit](const EndCount& end) {
        return end.exit_code == exit.exit_code && end.signal == exit.signal;
      });
  if (known == failed_ends_.end()) {
    failed_ends_.push_back({exit.exit_code, exit.signal, 1});
  } else {
    ++known->count;
  }
}

Failure WorkerGroup::failure_of(const WorkerExit& exit, Instant now) const {
  const auto index = static_cast<std::size_t>(exit.local_rank.value);
  Failure failure;
  failure.kind = exit.signal != 0 ? FailureKind::worker_signaled : FailureKind::worker_exited;
  failure.host = site_.host;
  failure.local_rank = exit.local_rank.value;
  failure.rank = placement_.first_rank.value + exit.local_rank.value;
  failure.pid = workers_[index].pid;
  failure.exit_code = exit.signal != 0 ? -1 : exit.exit_code;
  failure.signal = exit.signal;
  failure.core_dumped = exit.core_dumped;
  failure.message = exit.message;
  // Whoever sends SIGKILL doesn't ask what the worker had lost.
  failure.secondary = exit.signal != SIGKILL && tells_of_lost_peer(exit.message, exit.last_output);
  failure.ran_for = started_ ? now - *started_ : Duration{};
  failure.oom_killed = exit.oom_killed;
  failure.oom_counter = exit.oom_counter;
  failure.peak_memory = exit.peak_memory;
  failure.last_output = exit.last_output;
  return failure;
}

// The survivors are told at once. A consequence is no reason to stop as long as its cause may show:
// stopping would hide it.
void WorkerGroup::act_on_deaths(Instant now, AgentEffects& effects) {
  const std::vector<Failure> losses = std::exchange(new_losses_, {});
  if (stop_signal_ || !deaths_.first_cause()) {
    return;
  }
  if (!failed_) {
    for (const Failure& loss : losses) {
      lose(loss, effects);
    }
    return;
  }
  const Failure& first = deaths_.first_cause()->failure;
  publish(first, effects);
  const bool cause_known = !first.secondary || (loss_elsewhere_ && !loss_elsewhere_->secondary);
  if (cause_known || !others_may_follow()) {
    stop(SIGTERM, now, effects);
  } else if (!culprit_until_) {
    culprit_until_ = now + kCulpritPatience;
  }
}

// A program that lives on after a loss ends with 0: who ends with another code has failed, unless
// that was itself the first death of the round.
bool WorkerGroup::is_loss(const Failure& failure) const {
  if (!site_.notify) {
    return false;
  }
  return failure.kind == FailureKind::worker_signaled ||
         (failure.kind == FailureKind::worker_exited && !deaths_.first_cause() && !loss_elsewhere_);
}

void WorkerGroup::lose(const Failure& failure, AgentEffects& effects) {
  ++lost_count_;
  if (others_may_follow()) {
    say_lost(failure, effects);
  }
  publish(failure, effects);
}

void WorkerGroup::say_lost(const Failure& failure, AgentEffects& effects) {
  effects.emplace_back(
      Say{Say::Level::warning, describe_failure(failure) + "; the others are told and run on"});
}

bool WorkerGroup::others_may_follow() const {
  return placement_.group_world_size > 1 ||
         std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.alive; });
}

const DatedFailure* WorkerGroup::failure() const {
  const bool known = deaths_.first_cause() && !culprit_until_ && (failed_ || !site_.notify);
  return known ? &*deaths_.first_cause() : nullptr;
}

const DatedFailure* WorkerGroup::loss() const {
  return site_.notify && deaths_.first_cause() && !failed_ ? &*deaths_.first_cause() : nullptr;
}

void WorkerGroup::remains_gone() {
  if (stage_ == Stage::sweeping) {
    stage_ = Stage::gone;
  }
}

std::vector<LocalRank> WorkerGroup::alive() const {
  std::vector<LocalRank> ranks;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].alive) {
      ranks.push_back(LocalRank{static_cast<std::int32_t>(i)});
    }
  }
  return ranks;
}

void WorkerGroup::advance(Instant now, AgentEffects& effects) {
  if (stage_ == Stage::placed && stop_signal_) {
    stage_ = Stage::gone;
    return;
  }
  if (stage_ == Stage::running) {
    const std::vector<LocalRank> living = alive();
    if (!living.empty()) {
      if (stop_signal_ && !climbing_) {
        climbing_ = true;
        const std::vector<StopEffect> first = ladder_.begin(living, *stop_signal_, now);
        climb(kill_wanted_ ? ladder_.hurry() : first, now, effects);
        resume(now, effects);
      }
      return;
    }
    if (culprit_until_) {
      return;
    }
    stage_ = Stage::succeeded;
  }
  if (stage_ == Stage::succeeded && stop_signal_) {
    sweep(effects);
  }
}

void WorkerGroup::sweep(AgentEffects& effects) {
  stage_ = Stage::sweeping;
  write_off_at_.reset();
  SweepRemains sweep{placement_.round};
  sparing_ = !kill_wanted_ && site_.grace > Duration{} && !ladder_.obeyed().empty();
  if (sparing_) {
    sweep.spared = ladder_.obeyed();
    sweep.signal = *stop_signal_;
  }
  effects.emplace_back(std::move(sweep));
  if (kill_wanted_) {
    kill_remains(effects);
  }
}

void WorkerGroup::kill_remains(AgentEffects& effects) {
  sparing_ = false;
  if (stage_ == Stage::sweeping && !std::exchange(remains_killed_, true)) {
    effects.emplace_back(KillRemains{placement_.round});
  }
}

void WorkerGroup::climb(const std::vector<StopEffect>& steps, Instant now, AgentEffects& effects) {
  for (const StopEffect& step : steps) {
    if (const auto* send = std::get_if<SendSignal>(&step)) {
      effects.emplace_back(SignalWorker{send->local_rank, send->signal, send->to_end});
      note_sent(send->signal);
    } else {
      note_sent(SIGKILL);
      effects.emplace_back(KillWorker{std::get<SendKill>(step).local_rank});
      write_off_at_ = now + kKillPatience;
    }
  }
}

void WorkerGroup::note_sent(std::int32_t signal) {
  if (std::find(sent_.begin(), sent_.end(), signal) == sent_.end()) {
    sent_.push_back(signal);
  }
}

std::string WorkerGroup::name(LocalRank local_rank) const {
  return "rank " + std::to_string(placement_.first_rank.value + local_rank.value) + " (pid " +
         std::to_string(workers_[static_cast<std::size_t>(local_rank.value)].pid) + ") on " +
         site_.host;
}

void WorkerGroup::on_time(Instant now, AgentEffects& effects) {
  if (culprit_until_ && !paused_ && now >= *culprit_until_) {
    stop(SIGTERM, now, effects);
  }
  if (sparing_ && ladder_.next_deadline() && now >= *ladder_.next_deadline()) {
    effects.emplace_back(Say{Say::Level::warning, "what workers left behind did not end within " +
                                                      grace_text() + ": it is killed"});
    kill_remains(effects);
  }
  const std::vector<StopEffect> steps = ladder_.on_time(now);
  for (const StopEffect& step : steps) {
    effects.emplace_back(Say{Say::Level::warning, name(std::get<SendKill>(step).local_rank) +
                                                      " did not end within " + grace_text() +
                                                      ": it is killed"});
  }
  climb(steps, now, effects);
  if (stage_ == Stage::running && write_off_at_ && now >= *write_off_at_) {
    write_off(effects);
    advance(now, effects);
  }
}

std::string WorkerGroup::grace_text() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(site_.grace).count();
  return std::to_string(seconds) + " s of " + signal_name(*stop_signal_);
}

void WorkerGroup::write_off(AgentEffects& effects) {
  for (const LocalRank rank : alive()) {
    effects.emplace_back(Say{Say::Level::error, name(rank) + kCannotBeKilled});
    workers_[static_cast<std::size_t>(rank.value)].alive = false;
    ladder_.exited(rank);
  }
}

std::optional<Instant> WorkerGroup::kill_at() const {
  const bool somebody_waits = sparing_ || stage_ == Stage::running;
  return somebody_waits ? ladder_.next_deadline() : std::nullopt;
}

std::optional<Instant> WorkerGroup::next_deadline() const {
  if (stage_ != Stage::running) {
    return stage_ == Stage::sweeping ? kill_at() : std::nullopt;
  }
  if (culprit_until_) {
    return paused_ ? std::nullopt : culprit_until_;
  }
  return write_off_at_ ? write_off_at_ : ladder_.next_deadline();
}

}  // namespace ddp::launcher
