// What happens to a job on this node as lines of JSON, for programs (README, "Events").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/core/agent_events.h"
#include "launcher/core/launch_config.h"

namespace ddp::launcher {

// Watches what goes into the agent and what comes out of it.
class EventLines {
 public:
  using WallTime = std::chrono::microseconds;  // since 1970

  EventLines(const LaunchConfig& config, std::string host, rendezvous::NodeId node);

  // Whole lines, in order; empty if it is nobody's business.
  [[nodiscard]] std::string launched(WallTime now) const;
  [[nodiscard]] std::string of(const AgentEvent& event, WallTime now);
  [[nodiscard]] std::string of(const AgentEffects& effects, WallTime now);

 private:
  class Writer;

  // What did not happen to us is told by what comes of it.
  template <typename Other>
  void note(const Other&, Writer&) {}
  void note(const OrderReceived& event, Writer& to);
  void note(const CoordinatorLost& event, Writer& to);
  void note(const CoordinatorSilent& event, Writer& to);
  void note(const StoreOpened& event, Writer& to);
  void note(const StoreFailed& event, Writer& to);
  void note(const WorkersSpawned& event, Writer& to);
  void note(const SpawnFailed& event, Writer& to);
  void note(const WorkersExited& event, Writer& to);
  void note(const SignalReceived& event, Writer& to);
  void note(const GuardianLost& event, Writer& to);

  void note(const ReportStatus& effect, Writer& to);
  void note(const SpawnWorkers& effect, Writer& to);
  void note(const KillWorker& effect, Writer& to);
  void note(const StopGuardian& effect, Writer& to);
  void note(const ContinueGuardian& effect, Writer& to);
  void note(const PublishDeath& effect, Writer& to);
  void note(const Say& effect, Writer& to);
  void note(const ExitAgent& effect, Writer& to);

  [[nodiscard]] std::int64_t pid_of(LocalRank local_rank) const;

  std::int32_t workers_;
  NodeLimits nodes_;
  std::int32_t max_restarts_;
  std::string run_id_;
  std::vector<std::int32_t> signals_to_handle_;
  std::string host_;
  rendezvous::NodeId node_;

  std::optional<Placement> placement_;  // of the newest round that had workers
  std::vector<std::int64_t> pids_;      // its workers', by local rank
  std::string waiting_for_;
  bool suspended_ = false;
  std::string stop_reason_;  // of the newest order to stop
  // Of the newest round that was reported: so that each is told once.
  std::optional<RoundId> round_;
  bool stopping_told_ = false;
  bool over_told_ = false;
};

}  // namespace ddp::launcher
