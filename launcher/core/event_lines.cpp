#include "launcher/core/event_lines.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <string_view>
#include <utility>

#include "launcher/core/failure_text.h"
#include "launcher/core/signal_names.h"
#include "launcher/core/signal_roles.h"
#include "rendezvous/core/message_json_fields.h"

namespace ddp::launcher {

namespace json = boost::json;
using rendezvous::NodePhase;
using rendezvous::message_json::as_text;

namespace {

constexpr int kFormat = 1;

std::string six_digits(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(6 - digits.size(), '0') + digits;
}

const char* name_of(SignalRole role) {
  switch (role) {
    case SignalRole::not_ours:
    case SignalRole::nothing:
      break;
    case SignalRole::passed_on:
      return "passed_on";
    case SignalRole::suspends:
      return "suspends";
    case SignalRole::resumes:
      return "resumes";
    case SignalRole::ends_job:
      return "ends_job";
  }
  return nullptr;
}

void add_end(json::object& to, std::int32_t exit_code, std::int32_t signal) {
  if (signal != 0) {
    to["signal"] = signal;
    to["signal_name"] = signal_name(signal);
  } else if (exit_code >= 0) {
    to["exit_code"] = exit_code;
  }
}

void add_failure(json::object& to, const Failure& failure) {
  if (failure.rank >= 0) {
    to["rank"] = failure.rank;
  }
  if (failure.local_rank >= 0) {
    to["local_rank"] = failure.local_rank;
  }
  if (failure.pid >= 0) {
    to["pid"] = failure.pid;
  }
  to["host"] = as_text(failure.host);
  add_end(to, failure.exit_code, failure.signal);
  to["reason"] = as_text(describe_failure(failure));
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

// The time is written by hand: as a double it would lose its last digits in print.
class EventLines::Writer {
 public:
  explicit Writer(WallTime now)
      : time_(std::to_string(now.count() / 1'000'000) + "." + six_digits(now.count() % 1'000'000)) {
  }

  void line(std::string_view event, json::object fields) {
    const std::string rest = json::serialize(fields);
    text_ += "{\"time\":" + time_ + ",\"event\":\"" + std::string(event) + "\"";
    text_ += fields.empty() ? "}" : "," + rest.substr(1);
    text_ += '\n';
  }

  std::string take() { return std::move(text_); }

 private:
  std::string time_;
  std::string text_;
};

EventLines::EventLines(const LaunchConfig& config, std::string host, rendezvous::NodeId node)
    : workers_(config.workers),
      nodes_(config.nodes),
      max_restarts_(config.max_restarts),
      run_id_(config.run_id),
      signals_to_handle_(config.signals_to_handle),
      host_(std::move(host)),
      node_(std::move(node)) {}

std::string EventLines::launched(WallTime now) const {
  Writer to(now);
  to.line("launched", {{"format", kFormat},
                       {"run_id", as_text(run_id_)},
                       {"host", as_text(host_)},
                       {"node", as_text(node_.value)},
                       {"workers", workers_},
                       {"min_nodes", nodes_.min},
                       {"max_nodes", nodes_.max},
                       {"max_restarts", max_restarts_}});
  return to.take();
}

std::string EventLines::of(const AgentEvent& event, WallTime now) {
  Writer to(now);
  std::visit([&](const auto& happened) { note(happened, to); }, event);
  return to.take();
}

std::string EventLines::of(const AgentEffects& effects, WallTime now) {
  Writer to(now);
  for (const AgentEffect& effect : effects) {
    std::visit([&](const auto& wanted) { note(wanted, to); }, effect);
  }
  return to.take();
}

std::int64_t EventLines::pid_of(LocalRank local_rank) const {
  const auto index = static_cast<std::size_t>(local_rank.value);
  return index < pids_.size() ? pids_[index] : -1;
}

// ---- what happened ---------------------------------------------------------------------------

void EventLines::note(const OrderReceived& event, Writer& to) {
  if (const auto* stop = std::get_if<rendezvous::Stop>(&event.order)) {
    stop_reason_ = stop->reason;
  }
  const auto* wait = std::get_if<rendezvous::Wait>(&event.order);
  if (wait == nullptr) {
    waiting_for_.clear();
    return;
  }
  // Where there is but one node the wait for it is over before it can be told.
  if (wait->reason == waiting_for_ || (nodes_.max == 1 && !wait->pausing)) {
    return;
  }
  waiting_for_ = wait->reason;
  json::object fields{{"reason", as_text(wait->reason)}, {"pausing", wait->pausing}};
  if (wait->remaining) {
    fields["seconds"] = seconds(*wait->remaining);
  }
  to.line("waiting", std::move(fields));
}

void EventLines::note(const CoordinatorLost& event, Writer& to) {
  to.line("coordinator_lost", {{"exit_code", event.exit_code}, {"reason", as_text(event.reason)}});
}

void EventLines::note(const CoordinatorSilent& event, Writer& to) {
  to.line("coordinator_silent", {{"reason", as_text(event.reason)}});
}

void EventLines::note(const StoreOpened& event, Writer& to) {
  to.line("store_opened", {{"round", event.round.number},
                           {"host", as_text(event.endpoint.host)},
                           {"port", event.endpoint.port.value}});
}

void EventLines::note(const StoreFailed& event, Writer& to) {
  to.line("store_failed", {{"round", event.round.number}, {"reason", as_text(event.reason)}});
}

void EventLines::note(const WorkersSpawned& event, Writer& to) {
  pids_ = event.pids;
  json::object fields{{"round", event.round.number}};
  if (placement_) {
    fields["first_rank"] = placement_->first_rank.value;
    fields["world_size"] = placement_->world_size;
    fields["restart_count"] = placement_->restart_count;
  }
  fields["pids"] = json::array(pids_.begin(), pids_.end());
  to.line("workers_started", std::move(fields));
}

void EventLines::note(const SpawnFailed& event, Writer& to) {
  to.line("start_failed", {{"round", event.round.number},
                           {"local_rank", event.local_rank.value},
                           {"exit_code", event.exit_code},
                           {"reason", as_text(event.reason)}});
}

void EventLines::note(const WorkersExited& event, Writer& to) {
  for (const WorkerExit& exit : event.exits) {
    json::object fields{{"round", event.round.number}};
    if (placement_) {
      fields["rank"] = placement_->first_rank.value + exit.local_rank.value;
    }
    fields["local_rank"] = exit.local_rank.value;
    fields["pid"] = pid_of(exit.local_rank);
    add_end(fields, exit.exit_code, exit.signal);
    if (exit.core_dumped) {
      fields["core_dumped"] = true;
    }
    if (exit.oom_killed) {
      fields["oom_killed"] = true;
    }
    if (exit.peak_memory >= 0) {
      fields["peak_memory"] = exit.peak_memory;
    }
    to.line("worker_exited", std::move(fields));
  }
}

void EventLines::note(const SignalReceived& event, Writer& to) {
  const char* meaning = name_of(role_of_signal(event.signal, signals_to_handle_));
  const bool without_effect = event.signal == SIGCONT && !suspended_;
  if (meaning == nullptr || without_effect) {
    return;
  }
  to.line("signal", {{"signal", event.signal},
                     {"signal_name", signal_name(event.signal)},
                     {"meaning", meaning},
                     {"passed_on", event.passed_on}});
}

void EventLines::note(const GuardianLost&, Writer& to) {
  to.line("guardian_lost", {});
}

// ---- what was done ---------------------------------------------------------------------------

void EventLines::note(const ReportStatus& effect, Writer& to) {
  const NodeStatus& status = effect.status;
  if (!status.round) {
    return;
  }
  if (status.round != round_) {
    round_ = status.round;
    stopping_told_ = over_told_ = false;
  }
  const bool stops = status.phase == NodePhase::failed || status.phase == NodePhase::stopping;
  if (stops && !std::exchange(stopping_told_, true) && !over_told_) {
    to.line(
        "stopping",
        {{"round", round_->number},
         {"reason", as_text(status.failure ? describe_failure(*status.failure) : stop_reason_)}});
  }
  const bool over = status.phase == NodePhase::succeeded || status.phase == NodePhase::stopped;
  if (over && !std::exchange(over_told_, true)) {
    to.line("round_over",
            {{"round", round_->number}, {"succeeded", status.phase == NodePhase::succeeded}});
  }
}

void EventLines::note(const SpawnWorkers& effect, Writer& to) {
  const Placement& next = effect.placement;
  if (placement_) {
    to.line("restart", {{"round", next.round.number},
                        {"restart_count", next.restart_count},
                        {"max_restarts", next.max_restarts}});
  }
  placement_ = next;
  pids_.clear();
}

void EventLines::note(const KillWorker& effect, Writer& to) {
  json::object fields;
  if (placement_) {
    fields["round"] = placement_->round.number;
    fields["rank"] = placement_->first_rank.value + effect.local_rank.value;
  }
  fields["local_rank"] = effect.local_rank.value;
  fields["pid"] = pid_of(effect.local_rank);
  to.line("worker_killed", std::move(fields));
}

void EventLines::note(const StopGuardian&, Writer& to) {
  if (!std::exchange(suspended_, true)) {
    to.line("suspended", {});
  }
}

void EventLines::note(const ContinueGuardian&, Writer& to) {
  suspended_ = false;
  to.line("resumed", {});
}

void EventLines::note(const PublishDeath& effect, Writer& to) {
  json::object fields;
  if (placement_) {
    fields["round"] = placement_->round.number;
  }
  add_failure(fields, effect.failure);
  to.line("death_published", std::move(fields));
}

void EventLines::note(const Say& effect, Writer& to) {
  if (effect.level == Say::Level::note) {
    return;
  }
  to.line("message", {{"level", effect.level == Say::Level::error ? "error" : "warning"},
                      {"text", as_text(effect.text)}});
}

void EventLines::note(const ExitAgent& effect, Writer& to) {
  json::object fields{{"exit_code", effect.exit_code}};
  if (effect.verdict) {
    fields["reason"] = as_text(effect.verdict->reason);
    fields["restarts_used"] = effect.verdict->restarts_used;
    if (effect.verdict->failure) {
      json::object failure;
      add_failure(failure, *effect.verdict->failure);
      fields["failure"] = std::move(failure);
    }
  }
  to.line("verdict", std::move(fields));
}

}  // namespace ddp::launcher
