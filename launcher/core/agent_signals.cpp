// What the agent does about a signal: end the job, pass it on, suspend, resume.
#include <algorithm>
#include <utility>

#include "launcher/core/agent.h"
#include "launcher/core/signal_names.h"
#include "launcher/core/signal_roles.h"

namespace ddp::launcher {

using rendezvous::FailureKind;
using Stage = WorkerGroup::Stage;

namespace {

std::string count_of_workers(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " worker" : " workers");
}

}  // namespace

void Agent::on(const SignalReceived& event, Instant now, AgentEffects& effects) {
  switch (role_of_signal(event.signal, config_.signals_to_handle)) {
    case SignalRole::not_ours:
    case SignalRole::nothing:
      return;
    case SignalRole::passed_on:
      return pass_on(event, now, effects);
    case SignalRole::suspends:
      return suspend(now, effects);
    case SignalRole::resumes:
      return resume(event.passed_on, now, effects);
    case SignalRole::ends_job:
      break;
  }
  if (ending_ && ending_->signal != 0) {
    ask_again(event, now, effects);
  } else {
    interrupt(event, now, effects);
  }
  resume(false, now, effects);
}

void Agent::interrupt(const SignalReceived& event, Instant now, AgentEffects& effects) {
  const Duration patience = last_order_ && !(ending_ && ending_->patience == Duration{})
                                ? Duration{kLeavePatience}
                                : Duration{};
  ending_ = Ending{rendezvous::exit_code::kSignalBase + event.signal,
                   "interrupted by " + signal_name(event.signal), patience, event.signal, now};
  ending_->heard_from(event.passed_on);
  next_.reset();
  if (!verdict_) {
    Failure failure;
    failure.kind = FailureKind::interrupted;
    failure.host = host_;
    failure.signal = event.signal;
    own_failure_ = DatedFailure{failure, now};
  }
  tell_workers_to_end(event.signal, now, effects);
}

void Agent::tell_workers_to_end(std::int32_t signal, Instant now, AgentEffects& effects) {
  if (!group_) {
    return;
  }
  const std::int32_t sent = ending_signal_for_workers(signal, config_.signals_to_handle);
  const std::size_t living = group_->alive().size();
  if (living > 0) {
    const std::string how = sent == signal ? ": passed on to " : ": " + signal_name(sent) + " to ";
    effects.emplace_back(Say{Say::Level::warning,
                             signal_name(signal) + how + count_of_workers(living) +
                                 (asks_to_hurry(signal) ? "; a second one kills at once" : "")});
  }
  group_->forward(sent, now, effects);
}

// Batch systems signal every process of a job, some with two signals in a row, and a terminal that
// is closed sends several: only a person, or a batch system that has lost patience, asks twice.
bool Agent::is_second_request(const SignalReceived& event, Instant now) {
  const bool news = ending_->heard_from(event.passed_on);
  const bool other_half = event.signal == ending_->signal && news;
  return now - ending_->at >= kSignalEcho && !other_half && asks_to_hurry(event.signal);
}

// Our part is done, and others are waited for: nodes, readers of our output. Nothing is left that a
// first request could ask to end in its own time.
void Agent::after_exit(const AgentEvent& event, Instant now, AgentEffects& effects) {
  const auto* signal = std::get_if<SignalReceived>(&event);
  const bool request =
      signal != nullptr &&
      role_of_signal(signal->signal, config_.signals_to_handle) == SignalRole::ends_job;
  const bool interrupted = ending_ && ending_->signal != 0;
  if (std::holds_alternative<GuardianLost>(event) ||
      (request && (!interrupted || is_second_request(*signal, now)))) {
    effects.emplace_back(Hurry{});
  }
}

void Agent::ask_again(const SignalReceived& event, Instant now, AgentEffects& effects) {
  if (!is_second_request(event, now)) {
    return;
  }
  if (!asks_to_hurry(ending_->signal)) {
    ending_->signal = event.signal;
    ending_->at = now;
    return tell_workers_to_end(event.signal, now, effects);
  }
  ending_->patience = std::min(ending_->patience, Duration{kHurriedPatience});
  if (group_) {
    group_->kill(now, effects);
  }
  effects.emplace_back(Hurry{});
}

void Agent::pass_on(const SignalReceived& event, Instant now, AgentEffects& effects) {
  const PassedOn before = std::exchange(passed_on_[event.signal], {now, event.passed_on});
  if (before.at && now - *before.at < kSignalEcho && before.by_guardian != event.passed_on) {
    return;
  }
  const bool running = group_ && group_->stage() == Stage::running;
  const std::vector<LocalRank> living = running ? group_->alive() : std::vector<LocalRank>{};
  effects.emplace_back(
      Say{Say::Level::note,
          signal_name(event.signal) + (living.empty()
                                           ? ": no worker is there to get it"
                                           : ": passed on to " + count_of_workers(living.size()))});
  for (const LocalRank rank : living) {
    effects.emplace_back(SignalWorker{rank, event.signal});
  }
}

void Agent::suspend(Instant now, AgentEffects& effects) {
  // The guardian runs, or nobody could have sent this through it: it was continued, and the kernel
  // has dropped that SIGCONT for this newer signal.
  if (suspended_) {
    effects.emplace_back(StopGuardian{});
    return;
  }
  suspended_ = true;
  if (group_) {
    group_->pause(now, effects);
  }
  effects.emplace_back(Say{Say::Level::note, "suspended"});
  effects.emplace_back(StopGuardian{});
}

void Agent::resume(bool guardian_runs, Instant now, AgentEffects& effects) {
  if (!suspended_) {
    return;
  }
  suspended_ = false;
  if (group_) {
    group_->resume(now, effects);
  }
  effects.emplace_back(Say{Say::Level::note, "resumed"});
  effects.emplace_back(ContinueGuardian{guardian_runs});
}

}  // namespace ddp::launcher
