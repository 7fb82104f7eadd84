#include "launcher/core/worker_group.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "launcher/core/signal_names.h"

namespace ddp::launcher {

using rendezvous::FailureKind;

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

void WorkerGroup::stop(std::int32_t signal, Instant now, AgentEffects& effects) {
  if (stop_signal_) {
    return;
  }
  stop_signal_ = signal;
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
  if (!stop_signal_) {
    stop_signal_ = SIGKILL;
  }
  kill_wanted_ = true;
  advance(now, effects);
  if (climbing_) {
    climb(ladder_.hurry(), now, effects);
  }
}

void WorkerGroup::pause(Instant now, AgentEffects& effects) {
  if (paused_ || (stage_ != Stage::spawning && stage_ != Stage::running)) {
    return;
  }
  paused_ = true;
  ladder_.pause(now);
  effects.emplace_back(PauseWorkers{});
}

void WorkerGroup::resume(Instant now, AgentEffects& effects) {
  if (!paused_) {
    return;
  }
  paused_ = false;
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

void WorkerGroup::spawned(const std::vector<std::int64_t>& pids, Instant now,
                          AgentEffects& effects) {
  if (stage_ != Stage::spawning) {
    return;
  }
  for (std::size_t i = 0; i < workers_.size() && i < pids.size(); ++i) {
    workers_[i].pid = pids[i];
  }
  stage_ = Stage::running;
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
  Failure failure;
  failure.kind = FailureKind::spawn_failed;
  failure.local_rank = event.local_rank.value;
  failure.exit_code = event.exit_code;
  failure.message = event.reason;
  fail(std::move(failure), now, effects);
  advance(now, effects);
}

void WorkerGroup::exited(const WorkerExited& event, Instant now, AgentEffects& effects) {
  const auto index = static_cast<std::size_t>(event.local_rank.value);
  if ((stage_ != Stage::spawning && stage_ != Stage::running) || event.local_rank.value < 0 ||
      index >= workers_.size() || !workers_[index].alive) {
    return;
  }
  workers_[index].alive = false;
  ladder_.exited(event.local_rank);
  // One that failed by itself in the same moment was not stopped by us.
  const bool as_asked = event.signal == 0 ? event.exit_code == 0
                                          : event.signal == stop_signal_ || event.signal == SIGKILL;
  stopped_count_ += climbing_ && as_asked ? 1 : 0;
  if (event.signal != 0 || event.exit_code != 0) {
    Failure failure;
    failure.kind = event.signal != 0 ? FailureKind::worker_signaled : FailureKind::worker_exited;
    failure.local_rank = event.local_rank.value;
    failure.pid = workers_[index].pid;
    failure.exit_code = event.signal != 0 ? -1 : event.exit_code;
    failure.signal = event.signal;
    failure.core_dumped = event.core_dumped;
    failure.message = event.message;
    fail(std::move(failure), now, effects);
  }
  advance(now, effects);
}

// A worker that ends while we stop it, however it ends, is a consequence and no failure.
void WorkerGroup::fail(Failure failure, Instant now, AgentEffects& effects) {
  if (stop_signal_) {
    return;
  }
  failure.host = site_.host;
  failure.rank = placement_.first_rank.value + failure.local_rank;
  failure_ = DatedFailure{failure, now};
  stop_signal_ = SIGTERM;
  publish(failure, effects);
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
    stage_ = Stage::succeeded;
  }
  if (stage_ == Stage::succeeded && stop_signal_) {
    stage_ = Stage::sweeping;
    write_off_at_.reset();
    effects.emplace_back(SweepRemains{placement_.round});
  }
}

void WorkerGroup::climb(const std::vector<StopEffect>& steps, Instant now, AgentEffects& effects) {
  for (const StopEffect& step : steps) {
    if (const auto* send = std::get_if<SendSignal>(&step)) {
      effects.emplace_back(SignalWorker{send->local_rank, send->signal});
    } else {
      effects.emplace_back(KillWorker{std::get<SendKill>(step).local_rank});
      write_off_at_ = now + kKillPatience;
    }
  }
}

std::string WorkerGroup::name(LocalRank local_rank) const {
  return "rank " + std::to_string(placement_.first_rank.value + local_rank.value) + " (pid " +
         std::to_string(workers_[static_cast<std::size_t>(local_rank.value)].pid) + ") on " +
         site_.host;
}

void WorkerGroup::on_time(Instant now, AgentEffects& effects) {
  const std::vector<StopEffect> steps = ladder_.on_time(now);
  for (const StopEffect& step : steps) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(site_.grace).count();
    effects.emplace_back(
        Say{Say::Level::warning, name(std::get<SendKill>(step).local_rank) +
                                     " did not end within " + std::to_string(seconds) + " s of " +
                                     signal_name(*stop_signal_) + ": it is killed"});
  }
  climb(steps, now, effects);
  if (stage_ == Stage::running && write_off_at_ && now >= *write_off_at_) {
    write_off(effects);
    advance(now, effects);
  }
}

void WorkerGroup::write_off(AgentEffects& effects) {
  for (const LocalRank rank : alive()) {
    effects.emplace_back(
        Say{Say::Level::error, name(rank) + " cannot be killed (waiting in the kernel, state D?): "
                                            "the job goes on without waiting for it"});
    workers_[static_cast<std::size_t>(rank.value)].alive = false;
    ladder_.exited(rank);
  }
}

std::optional<Instant> WorkerGroup::next_deadline() const {
  if (stage_ != Stage::running) {
    return std::nullopt;
  }
  return write_off_at_ ? write_off_at_ : ladder_.next_deadline();
}

}  // namespace ddp::launcher
