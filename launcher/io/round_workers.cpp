#include "launcher/io/round_workers.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>

#include "launcher/core/failure_text.h"
#include "launcher/core/worker_group.h"
#include "launcher/io/children.h"
#include "launcher/io/spawner.h"

namespace ddp::launcher {
namespace {

// What a worker piped its output through (`exec > >(tee log)`) writes the last of it after the
// worker's own end: a moment, unless somebody holds the pipe who has nothing to say.
constexpr WorkerOutput::Patience kHearing{std::chrono::milliseconds(200),
                                          std::chrono::milliseconds(3000)};

// On a machine that is busy what is heard out waits for its turn as well.
bool some_child_runs() {
  auto children = std::make_unique<ChildList>();
  if (!children->read()) return false;
  const auto pids = children->pids();
  return std::any_of(pids.begin(), pids.end(), [](pid_t pid) {
    const char state = look_at(pid).state;
    return state == 'R' || state == 'D';
  });
}

}  // namespace

RoundWorkers::RoundWorkers(boost::asio::io_context& context, const Placement& placement,
                           Callbacks callbacks)
    : context_(context),
      placement_(placement),
      callbacks_(std::move(callbacks)),
      patience_(context) {}

void RoundWorkers::start(const RoundPlan& plan, ErrorFiles& error_files,
                         const SpawnSettings& settings, Console& console,
                         const StreamPlan& streams) {
  output_.emplace(context_, console, streams, plan.workers.size());
  page_.emplace(placement_, static_cast<std::uint32_t>(plan.workers.size()));
  Spawner spawner(page_->fd(), settings);
  std::vector<SpawnedProcess> processes;
  processes.reserve(plan.workers.size());
  for (const WorkerPlan& worker : plan.workers) {
    error_paths_.push_back(error_files.prepare(placement_, worker.local_rank));
    Environment own = worker.environment;
    own[kErrorFileVariable] = error_paths_.back();
    own[kSharedMemoryVariable] = std::to_string(kWorkerControlPageFd);
    auto started = spawner.start(
        {worker.arguments, plan.environment, std::move(own), output_->open(processes.size())});
    output_->started();
    if (auto* refusal = std::get_if<SpawnRefusal>(&started)) {
      failed_ = SpawnFailed{placement_.round, worker.local_rank, refusal->exit_code,
                            std::move(refusal->reason)};
      break;
    }
    processes.push_back(std::get<SpawnedProcess>(std::move(started)));
  }
  watch(std::move(processes));
}

void RoundWorkers::watch(std::vector<SpawnedProcess> processes) {
  if (!failed_) {
    WorkersSpawned spawned{placement_.round, {}};
    for (const SpawnedProcess& process : processes) spawned.pids.push_back(process.pid);
    // Before any end of a worker can be noticed.
    tell(std::move(spawned));
  }
  for (std::size_t i = 0; i < processes.size(); ++i) {
    own_numbers_.push_back(processes[i].own_number);
    workers_.push_back(std::make_unique<WorkerProcess>(
        context_, std::move(processes[i]),
        [this, i](const ExitStatus& status) { on_exit(i, status); }));
  }
  if (!failed_) {
    oom_.emplace();  // While the workers begin: nobody waits for it.
    return;
  }
  for (const auto& worker : workers_) worker->kill_all();
  patience_.expires_after(WorkerGroup::kKillPatience);
  patience_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tell_failure();
  });
  tell_failure_when_all_are_gone();
}

void RoundWorkers::on_exit(std::size_t index, const ExitStatus& status) {
  WorkersExited event{placement_.round, {describe(index, status)}};
  // From here on workers die of our stop. Those that are dead already did not.
  if (status.exit_code != 0 && !failed_ && !told_to_end_) add_others_that_ended(event.exits);
  callbacks_.on_reaped();
  if (failed_) {
    tell_failure_when_all_are_gone();
  } else {
    callbacks_.on_event(event);
  }
}

WorkerExit RoundWorkers::describe(std::size_t index, const ExitStatus& status) {
  WorkerExit exit{LocalRank{static_cast<std::int32_t>(index)}, status.exit_code, status.signal,
                  status.core_dumped};
  exit.peak_memory = status.peak_memory;
  output_->ended(index);
  if (status.exit_code == 0 || failed_) return exit;
  ErrorFile file = read_error_file(error_paths_[index]);
  exit.message = std::move(file.message);
  exit.failed_at = file.failed_at;
  exit.told_at = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  exit.last_output = output_->last_lines(index);
  look_for_oom_kill(exit);
  return exit;
}

void RoundWorkers::add_others_that_ended(std::vector<WorkerExit>& exits) {
  std::vector<pollfd> looks;
  looks.reserve(workers_.size());
  for (const auto& worker : workers_) looks.push_back({worker->pidfd(), POLLIN, 0});
  if (::poll(looks.data(), looks.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if ((looks[i].revents & POLLIN) == 0) continue;
    if (const auto status = workers_[i]->take_end()) exits.push_back(describe(i, *status));
  }
}

// Also a shell that is a worker says in its code that its program was killed.
void RoundWorkers::look_for_oom_kill(WorkerExit& exit) const {
  const bool killed =
      exit.signal == SIGKILL || exit.exit_code == rendezvous::exit_code::kSignalBase + SIGKILL;
  if (!killed || kill_sent_ || !oom_) return;
  exit.oom_killed = oom_->has_killed();
  exit.oom_counter = oom_->counter();
}

void RoundWorkers::pass_on_window_size() {
  if (output_) output_->pass_on_window_size();
}

RoundWorkers::Sessions RoundWorkers::sessions_of(const std::vector<LocalRank>& local_ranks) const {
  Sessions sessions;
  for (const LocalRank local_rank : local_ranks) {
    const auto index = static_cast<std::size_t>(local_rank.value);
    sessions.ours.push_back(workers_.at(index)->pid());
    sessions.theirs.push_back(own_numbers_.at(index));
  }
  return sessions;
}

void RoundWorkers::hear_out(std::function<void()> done) {
  if (!output_) return done();
  output_->hear_out(kHearing, some_child_runs, std::move(done));
}

void RoundWorkers::stop_hearing() {
  if (output_) output_->stop_hearing();
}

std::string RoundWorkers::last_output_of(const Failure& failure) const {
  const auto index = static_cast<std::size_t>(failure.local_rank);
  const bool is_one_of_us = failure.local_rank >= 0 && index < workers_.size() &&
                            failure.rank == placement_.first_rank.value + failure.local_rank &&
                            failure.pid == workers_[index]->pid();
  return is_one_of_us && output_ ? output_->last_lines(index) : std::string();
}

void RoundWorkers::finish_output() {
  if (output_) output_->finish();
}

std::string RoundWorkers::output_trouble() const {
  return output_ ? output_->trouble() : std::string();
}

void RoundWorkers::tell_failure_when_all_are_gone() {
  if (!any_alive()) tell_failure();
}

void RoundWorkers::tell_failure() {
  patience_.cancel();
  if (std::exchange(failure_told_, true)) return;
  for (const auto& worker : workers_) {
    if (worker->alive()) failed_->not_killed.push_back(worker->pid());
  }
  tell(*failed_);
}

void RoundWorkers::tell(AgentEvent event) {
  // Nobody is called from inside a call of his own.
  boost::asio::post(context_,
                    [tell = callbacks_.on_event, event = std::move(event)] { tell(event); });
}

void RoundWorkers::signal(LocalRank local_rank, int signal, bool to_end) {
  WorkerProcess& worker = *workers_.at(static_cast<std::size_t>(local_rank.value));
  if (!to_end) return worker.signal(signal);
  told_to_end_ = true;
  worker.tell_to_end(signal);
}

void RoundWorkers::kill(LocalRank local_rank) {
  told_to_end_ = true;
  kill_sent_ = true;
  workers_.at(static_cast<std::size_t>(local_rank.value))->kill_all();
}

void RoundWorkers::signal_all(int signal) {
  for (const auto& worker : workers_) worker->signal_all(signal);
}

void RoundWorkers::publish(const Failure& failure) {
  Failure told = failure;
  if (told.message.empty()) told.message = describe_failure(failure);
  page_->poison(told);
}

bool RoundWorkers::any_alive() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->alive(); });
}

bool RoundWorkers::owns(pid_t pid) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [pid](const auto& worker) { return worker->alive() && worker->pid() == pid; });
}

}  // namespace ddp::launcher
