// The worker processes of one round on this node, with their control page and their error files.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/core/agent_events.h"
#include "launcher/io/error_files.h"
#include "launcher/io/oom_probe.h"
#include "launcher/io/shared_page.h"
#include "launcher/io/spawner.h"
#include "launcher/io/worker_output.h"
#include "launcher/io/worker_process.h"

namespace ddp::launcher {

class RoundWorkers {
 public:
  struct Callbacks {
    // WorkersSpawned or SpawnFailed once, WorkersExited until all have; always from the loop.
    std::function<void(const AgentEvent& event)> on_event;
    // A worker has been reaped: strangers may hide behind it.
    std::function<void()> on_reaped;
  };

  RoundWorkers(boost::asio::io_context& context, const Placement& placement, Callbacks callbacks);
  RoundWorkers(const RoundWorkers&) = delete;
  RoundWorkers& operator=(const RoundWorkers&) = delete;

  // Starts all of them in one go. If one can't be started, those before it are killed and reaped
  // before SpawnFailed is told, if they can be killed in time (else any_alive). Throws
  // std::system_error if there is no control page.
  void start(const RoundPlan& plan, ErrorFiles& error_files, const SpawnSettings& settings,
             Console& console, const StreamPlan& streams);

  void signal(LocalRank local_rank, int signal, bool to_end);
  void kill(LocalRank local_rank);
  void signal_all(int signal);  // everything of every worker's
  // Tells all workers through the control page.
  void publish(const Failure& failure);
  [[nodiscard]] bool owns(pid_t pid) const;
  // Numbers of the sessions that those workers led, by the agent's and by the workers' own count.
  struct Sessions {
    std::vector<pid_t> ours;
    std::vector<pid_t> theirs;
  };
  [[nodiscard]] Sessions sessions_of(const std::vector<LocalRank>& local_ranks) const;
  void pass_on_window_size();
  [[nodiscard]] bool any_alive() const;
  // No worker is alive, but what they left may still have to say something: calls `done` as soon as
  // that is read, now or from the loop, after a short time at the latest; or at stop_hearing().
  void hear_out(std::function<void()> done);
  void stop_hearing();
  // What the worker wrote that `failure` tells of, and what it left, up to now; empty: it is none
  // of this round's, or wrote nothing.
  [[nodiscard]] std::string last_output_of(const Failure& failure) const;
  // Nothing of the round is alive: what it still had to say is read.
  void finish_output();
  // Why the workers' output doesn't pass through us; empty: it does.
  [[nodiscard]] std::string output_trouble() const;

 private:
  void watch(std::vector<SpawnedProcess> processes);
  void on_exit(std::size_t index, const ExitStatus& status);
  [[nodiscard]] WorkerExit describe(std::size_t index, const ExitStatus& status);
  void add_others_that_ended(std::vector<WorkerExit>& exits);
  void look_for_oom_kill(WorkerExit& exit) const;
  void tell(AgentEvent event);
  void tell_failure_when_all_are_gone();
  void tell_failure();

  boost::asio::io_context& context_;
  Placement placement_;
  Callbacks callbacks_;
  std::optional<SharedPage> page_;
  std::optional<WorkerOutput> output_;
  std::vector<std::string> error_paths_;                 // by local rank
  std::vector<std::unique_ptr<WorkerProcess>> workers_;  // by local rank
  std::vector<pid_t> own_numbers_;                       // likewise
  std::optional<SpawnFailed> failed_;
  bool failure_told_ = false;
  boost::asio::steady_timer patience_;  // with those that are killed because of it
  std::optional<OomProbe> oom_;
  bool told_to_end_ = false;  // some worker, by us
  bool kill_sent_ = false;
};

}  // namespace ddp::launcher
