// Runs the agent: turns what happens on this host into events and the agent's decisions into system
// calls. The only place that does.
#pragma once

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/core/agent.h"
#include "launcher/io/console.h"
#include "launcher/io/coordination.h"
#include "launcher/io/error_files.h"
#include "launcher/io/event_file.h"
#include "launcher/io/farewell.h"
#include "launcher/io/guardian.h"
#include "launcher/io/pid_namespace.h"
#include "launcher/io/remains.h"
#include "launcher/io/round_workers.h"
#include "launcher/io/signals.h"
#include "launcher/io/status_line.h"
#include "launcher/io/strangers.h"

namespace ddp::launcher {

class AgentRunner {
 public:
  // Throws std::system_error or std::runtime_error if it can't begin. `environment` outlives it.
  AgentRunner(LaunchConfig config, const Environment& environment, Guarded guarded,
              std::optional<UniqueFd> event_file = {});
  AgentRunner(const AgentRunner&) = delete;
  AgentRunner& operator=(const AgentRunner&) = delete;

  // Until the job is over here; the exit code. Call it from the main thread: workers die with it.
  [[nodiscard]] int run();

 private:
  void handle(const AgentEvent& event);
  void later(AgentEvent event);
  void note_and_carry_out(const AgentEffects& effects);
  void carry_out(const AgentEffects& effects);
  void arm_timer();
  void watch_guardian();

  void carry_out(const ReportStatus& effect);
  void carry_out(const OpenStore& effect);
  void carry_out(const CloseStore& effect);
  void carry_out(const SpawnWorkers& effect);
  void carry_out(const SignalWorker& effect);
  void carry_out(const KillWorker& effect);
  void carry_out(const PauseWorkers& effect);
  void carry_out(const ResumeWorkers& effect);
  void carry_out(const StopGuardian& effect);
  void carry_out(const ContinueGuardian& effect);
  void carry_out(const Hurry& effect);
  void carry_out(const SweepRemains& effect);
  void carry_out(const KillRemains& effect);
  void carry_out(const PublishDeath& effect);
  void carry_out(const Say& effect);
  void carry_out(const ExitAgent& effect);

  void signal_guardian(int signal);
  void stop_waiting();
  void put_workers_aside();
  [[nodiscard]] bool is_ours(pid_t pid) const;

  void on_signal(int signal, pid_t sender);
  void say_output_trouble();
  void tell_verdict(int exit_code);
  void quote_what_came_late(Failure& failure) const;

  LaunchConfig config_;
  const Environment& environment_;
  StreamPlan streams_;
  std::string host_name_;
  rendezvous::NodeId node_;
  boost::asio::io_context context_{1};
  Console console_;
  boost::asio::posix::stream_descriptor guardian_;
  pid_t guardian_pid_;
  UniqueFd guardian_pidfd_;
  boost::asio::steady_timer timer_;
  Signals signals_;
  SignalState found_signals_;
  std::unique_ptr<PidNamespace> namespace_;  // with --isolate=pid
  Strangers strangers_;
  Remains remains_;
  ErrorFiles error_files_;
  std::optional<rlimit> limit_of_files_;  // the original one, where it was raised
  Agent agent_;
  Coordination coordination_;
  std::optional<EventFile> events_;
  std::optional<StatusLine> status_line_;  // only on a terminal of our own
  std::unique_ptr<RoundWorkers> workers_;  // of the newest round that had any
  // Of earlier ones, while a worker is alive that could not be killed.
  std::vector<std::unique_ptr<RoundWorkers>> outlived_;
  std::optional<ExitAgent> exit_;
  std::optional<Farewell> farewell_;  // once our part is done
  bool hurried_ = false;
  bool guardian_lost_ = false;
};

}  // namespace ddp::launcher
