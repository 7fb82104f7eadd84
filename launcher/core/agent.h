// The agent as one machine: what happened on this node and what the coordinator says go in, what to
// do comes out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "launcher/core/agent_events.h"
#include "launcher/core/launch_config.h"
#include "launcher/core/worker_group.h"
#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::launcher {

using rendezvous::Instant;

// Level-triggered: it compares what is wanted (newest order, an ending) with what is, and asks for
// the difference; an order that is repeated asks for nothing.
class Agent {
 public:
  // How long an agent that was interrupted, and has nothing left alive, waits to hear from the
  // coordinator before it leaves by itself.
  static constexpr Duration kLeavePatience = std::chrono::seconds(5);

  // The same when it was asked twice: enough to learn the verdict from one that is there.
  static constexpr Duration kHurriedPatience = std::chrono::milliseconds(300);

  // What comes so soon after a signal belongs to it.
  static constexpr Duration kSignalEcho = std::chrono::milliseconds(100);

  // A wait that is over sooner is nobody's concern; after a round has been lost none is.
  static constexpr Duration kQuietWait = std::chrono::seconds(5);

  // `base_environment` is the agent's own; workers inherit it.
  Agent(LaunchConfig config, std::string host, rendezvous::NodeId node,
        Environment base_environment);

  [[nodiscard]] AgentEffects handle(const AgentEvent& event, Instant now);
  [[nodiscard]] AgentEffects on_time(Instant now);
  [[nodiscard]] std::optional<Instant> next_deadline() const;

  // What is waited for at this moment, for the status line of a terminal: a few words, empty if
  // there is nothing to say ("starting 3 of 8 workers").
  [[nodiscard]] std::string status_line(Instant now) const;

  // By Ctrl-Z: workers stand still, none is started.
  [[nodiscard]] bool suspended() const { return suspended_; }

  // Until the coordinator starts the next round, while it pauses before it does.
  [[nodiscard]] std::optional<Duration> pause_left(Instant now) const;

  // What ReportStatus would say now; the age of a failure grows with `now`.
  [[nodiscard]] NodeStatus status(Instant now) const;

 private:
  // A round that we were told of and have not entered yet; `stopped`: told to stop it before that.
  struct NextRound {
    Placement placement;
    bool stopped = false;
  };
  // Why this agent will exit without waiting for the job's end.
  struct Ending {
    std::int32_t exit_code;
    std::string reason;     // said at exit if no verdict is held
    Duration patience{};    // how long the coordinator may take to answer once nothing is left
    std::int32_t signal{};  // that interrupted us, 0 if none did
    Instant at{};
    bool sent_to_guardian = false;
    bool sent_to_us = false;

    // True for the first one that came this way.
    bool heard_from(bool guardian) {
      return !std::exchange(guardian ? sent_to_guardian : sent_to_us, true);
    }
  };
  struct PassedOn {
    std::optional<Instant> at;
    bool by_guardian = false;
  };

  void on(const OrderReceived& event, Instant now, AgentEffects& effects);
  void on(const CoordinatorLost& event, Instant now, AgentEffects& effects);
  void on(const CoordinatorSilent& event, Instant now, AgentEffects& effects);
  void on(const StoreOpened& event, Instant now, AgentEffects& effects);
  void on(const StoreFailed& event, Instant now, AgentEffects& effects);
  void on(const WorkersSpawned& event, Instant now, AgentEffects& effects);
  void on(const SpawnFailed& event, Instant now, AgentEffects& effects);
  void on(const WorkersExited& event, Instant now, AgentEffects& effects);
  void on(const RemainsGone& event, Instant now, AgentEffects& effects);
  void on(const SignalReceived& event, Instant now, AgentEffects& effects);
  void on(const GuardianLost& event, Instant now, AgentEffects& effects);

  void interrupt(const SignalReceived& event, Instant now, AgentEffects& effects);
  [[nodiscard]] bool is_second_request(const SignalReceived& event, Instant now);
  void after_exit(const AgentEvent& event, Instant now, AgentEffects& effects);
  void ask_again(const SignalReceived& event, Instant now, AgentEffects& effects);
  void tell_workers_to_end(std::int32_t signal, Instant now, AgentEffects& effects);
  void pass_on(const SignalReceived& event, Instant now, AgentEffects& effects);
  void suspend(Instant now, AgentEffects& effects);
  void resume(bool guardian_runs, Instant now, AgentEffects& effects);

  void obey(const rendezvous::Wait& order, Instant now, AgentEffects& effects);
  void obey(const rendezvous::Run& order, Instant now, AgentEffects& effects);
  void obey(const rendezvous::Stop& order, Instant now, AgentEffects& effects);
  void obey(const rendezvous::Close& order, Instant now, AgentEffects& effects);
  void obey(const rendezvous::Leave& order, Instant now, AgentEffects& effects);
  void obey(const rendezvous::Refuse& order, Instant now, AgentEffects& effects);

  void reconcile(Instant now, AgentEffects& effects);
  void enter_next_round(Instant now, AgentEffects& effects);
  void prepare_round(AgentEffects& effects);
  void report(Instant now, AgentEffects& effects);
  void leave_if_done(Instant now, AgentEffects& effects);
  void exit(AgentEffects& effects);
  // On this node, beside the job's first cause.
  [[nodiscard]] std::vector<EndCount> others_failed() const;
  void note_cause(const Failure& failure);
  void say_restart(const Placement& placement, AgentEffects& effects);
  void wait_for(const std::string& reason, Instant now, AgentEffects& effects);
  void say_waiting(Instant now, AgentEffects& effects);
  void stop_waiting();
  [[nodiscard]] std::string waiting_text(Instant now) const;
  [[nodiscard]] bool waits_in_silence() const;
  [[nodiscard]] bool in_round(const RoundId& round) const;
  [[nodiscard]] bool nothing_left() const;
  [[nodiscard]] bool leaving() const;

  LaunchConfig config_;
  std::string host_;
  rendezvous::NodeId node_;
  Environment base_environment_;

  std::optional<WorkerGroup> group_;  // the round we are in; kept when it is over
  std::optional<NextRound> next_;
  std::optional<Endpoint> store_;            // of the round we are in, once it is open
  bool store_requested_ = false;             // for the round we are in
  bool store_held_ = false;                  // some store of ours may be open
  std::optional<DatedFailure> own_failure_;  // interrupted or launcher_failed: not a worker's

  std::optional<Verdict> verdict_;  // the first one that we are told is binding
  bool told_to_leave_ = false;
  bool suspended_ = false;
  std::map<std::int32_t, PassedOn> passed_on_;  // by signal: the last one
  std::optional<Ending> ending_;
  std::optional<Instant> gone_since_;    // nothing left alive, and an ending is set
  std::optional<Instant> last_order_;    // when the coordinator was last heard
  std::optional<Failure> last_failure_;  // known cause of the last stop, for people
  std::string waiting_for_;              // why nothing runs; empty while something does
  std::optional<Instant> waiting_since_;
  std::optional<Instant> waiting_ends_;  // when the coordinator gives up or goes on, if it said so
  bool pausing_ = false;                 // it goes on
  bool waiting_said_ = false;
  std::int32_t restart_count_ = 0;
  NodeStatus reported_;  // the member starts out with an idle status too
  bool exited_ = false;
};

}  // namespace ddp::launcher
