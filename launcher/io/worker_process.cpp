#include "launcher/io/worker_process.h"

#include <sys/wait.h>

#include <csignal>
#include <utility>

namespace ddp::launcher {
namespace {

ExitStatus to_status(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {info.si_status, 0, false};
  return {-1, info.si_status, info.si_code == CLD_DUMPED};
}

}  // namespace

WorkerProcess::WorkerProcess(boost::asio::io_context& context, SpawnedProcess process,
                             OnExit on_exit)
    : pid_(process.pid),
      process_(context.get_executor(), process.pid, process.second_pidfd.release()),
      pidfd_(context, process.pidfd.release()),
      on_exit_(std::move(on_exit)) {
  wait();
}

WorkerProcess::~WorkerProcess() {
  if (!alive_) return;
  kill_all();
  reap();
}

void WorkerProcess::reap() {
  boost::system::error_code ignored;
  process_.running(ignored);
  // It would go by the number once more when it is destroyed, and by then that may be another's.
  process_.detach();
  alive_ = false;
}

void WorkerProcess::wait() {
  pidfd_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (!error) look_and_reap();
                    });
}

void WorkerProcess::look_and_reap() {
  siginfo_t info{};
  const auto fd = static_cast<id_t>(pidfd_.native_handle());
  if (::waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    wait();
    return;
  }
  // The dead leader still holds the number: nobody else can be hit.
  ::kill(-pid_, SIGKILL);
  reap();
  pidfd_.close();
  on_exit_(to_status(info));
}

void WorkerProcess::signal(int signal) {
  if (alive_) ::kill(pid_, signal);
}

void WorkerProcess::signal_all(int signal) {
  if (alive_) ::kill(-pid_, signal);
}

void WorkerProcess::kill_all() {
  signal_all(SIGKILL);
}

}  // namespace ddp::launcher
