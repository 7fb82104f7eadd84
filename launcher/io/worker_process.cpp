#include "launcher/io/worker_process.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "launcher/io/children.h"

namespace ddp::launcher {
namespace {

// A debugger that lets go of the dead does so soon, or not before it ends.
constexpr std::chrono::milliseconds kLookAgain{20};
constexpr std::chrono::milliseconds kTracersTime{1000};

ExitStatus to_status(const siginfo_t& info, const rusage& usage) {
  constexpr std::int64_t kUnit = 1024;
  ExitStatus status;
  if (info.si_code == CLD_EXITED) {
    status.exit_code = info.si_status;
  } else {
    status.signal = info.si_status;
    status.core_dumped = info.si_code == CLD_DUMPED;
  }
  if (usage.ru_maxrss > 0) status.peak_memory = usage.ru_maxrss * kUnit;
  return status;
}

}  // namespace

WorkerProcess::WorkerProcess(boost::asio::io_context& context, SpawnedProcess process,
                             OnExit on_exit)
    : pid_(process.pid),
      process_(context.get_executor(), process.pid, process.second_pidfd.release()),
      pidfd_(context, process.pidfd.release()),
      again_(context),
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
                      if (error || !alive_) return;
                      if (const auto status = take_end()) {
                        on_exit_(*status);
                      } else {
                        look_again();
                      }
                    });
}

// The pidfd tells of the end of one whom a tracer holds, and goes on telling, while the kernel
// doesn't let us reap it.
void WorkerProcess::look_again() {
  again_.expires_after(kLookAgain);
  again_.async_wait([this](const boost::system::error_code& error) {
    if (error || !alive_) return;
    looked_for_ += kLookAgain;
    auto status = take_end();
    if (!status && looked_for_ >= kTracersTime) status = claim_from_tracer();
    if (status) {
      on_exit_(*status);
    } else {
      look_again();
    }
  });
}

// It is reaped with what it leaves, when the tracer has let go.
std::optional<ExitStatus> WorkerProcess::claim_from_tracer() {
  const auto ended = wait_status_of_dead(pid_);
  if (!ended) return std::nullopt;
  ExitStatus status;
  if (WIFEXITED(*ended)) {
    status.exit_code = WEXITSTATUS(*ended);
  } else {
    status.signal = WTERMSIG(*ended);
    status.core_dumped = WCOREDUMP(*ended);
  }
  tell_group();
  process_.detach();
  alive_ = false;
  pidfd_.close();
  return status;
}

void WorkerProcess::tell_group() const {
  if (told_ == 0) return;
  // The dead leader still holds the number: nobody else can be hit.
  ::kill(-pid_, told_);
  ::kill(-pid_, SIGCONT);
}

std::optional<ExitStatus> WorkerProcess::take_end() {
  if (!alive_) return std::nullopt;
  siginfo_t info{};
  rusage usage{};
  // The C library's function doesn't tell what was used.
  if (::syscall(SYS_waitid, P_PIDFD, pidfd_.native_handle(), &info, WEXITED | WNOHANG | WNOWAIT,
                &usage) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  tell_group();
  reap();
  pidfd_.close();
  return to_status(info, usage);
}

void WorkerProcess::signal(int signal) {
  if (alive_) ::kill(pid_, signal);
}

void WorkerProcess::tell_to_end(int signal) {
  told_ = signal;
  this->signal(signal);
}

void WorkerProcess::signal_all(int signal) {
  if (alive_) ::kill(-pid_, signal);
}

void WorkerProcess::kill_all() {
  signal_all(SIGKILL);
}

}  // namespace ddp::launcher
