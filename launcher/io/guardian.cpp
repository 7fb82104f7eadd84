#include "launcher/io/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "launcher/core/signal_roles.h"
#include "launcher/io/children.h"
#include "launcher/io/empty_folders.h"

// From here on nothing allocates: the guardian must get through when memory has run out.

namespace ddp::launcher {
namespace {

constexpr int kLauncherFailed = 1;
constexpr int kSignalBase = 128;
constexpr int kSweepLimitSeconds = static_cast<int>(kSweepLimit.count());
constexpr int kSayLimitMs = 1000;
constexpr timespec kBetweenPasses{0, 5'000'000};
constexpr int kLooksBesideBystanders = 3;
// Then the living have their turn. Most, for listing children takes the square of how many there
// are.
constexpr int kReapedAtOnce = 100'000;

[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) {
  std::array<char, 512> line;
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  if (length <= 0) return;
  // A pipe that nobody reads must not keep a process of the job alive.
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&room, 1, kSayLimitMs) <= 0) return;
  const std::size_t size = std::min(static_cast<std::size_t>(length), line.size() - 1);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), size);
}

sigset_t block_signals(const SignalState& found) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const SignalRole role = role_of_signal(signal);
    // Blocked it comes, ignored or not.
    const bool wanted = role == SignalRole::resumes || signal == kStopGuardian ||
                        sigismember(&found.ignored, signal) != 1;
    if (role != SignalRole::not_ours && wanted) sigaddset(&set, signal);
  }
  sigaddset(&set, SIGCHLD);
  // An inherited "ignore" would make the kernel reap children behind our back.
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return set;
}

bool is_pending(int signal) {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

class Guardian {
 public:
  Guardian(pid_t agent, const sigset_t& signals, std::span<const char> folder_note,
           const ChildList& bystanders)
      : agent_(agent), signals_(signals), folder_note_(folder_note), bystanders_(bystanders) {}

  [[noreturn]] void run() {
    reap_all();
    sigset_t but_continue = signals_;
    sigdelset(&but_continue, SIGCONT);
    // A SIGCONT waits while the agent's order to stop is on its way here, or it would come after.
    bool told_to_suspend = false;
    while (agent_ > 0) {
      siginfo_t info{};
      const int signal = ::sigwaitinfo(told_to_suspend ? &but_continue : &signals_, &info);
      if (signal == SIGCHLD) {
        reap_all();
      } else if (signal > 0 && info.si_pid == agent_) {
        told_to_suspend = told_to_suspend && signal != kStopGuardian;
        if (signal == kStopGuardian) stop();
      } else if (signal > 0) {
        told_to_suspend = told_to_suspend || signal == SIGTSTP;
        // Unreaped, so the number is still the agent's.
        ::kill(agent_, signal);
      }
    }
    sweep();
    if (!folder_note_.empty() && folder_note_.front() != '\0') {
      remove_empty_folders(AT_FDCWD, folder_note_.data());
    }
    ::_exit(exit_code());
  }

 private:
  // Whether that can be is the kernel's to know: where nobody could continue us (the first process
  // of a container, an orphaned process group) SIGTSTP does nothing.
  void stop() const {
    if (is_pending(SIGCONT)) return;  // it would be forgotten
    sigset_t suspends;
    sigemptyset(&suspends);
    sigaddset(&suspends, SIGTSTP);
    ::kill(::getpid(), SIGTSTP);
    ::sigprocmask(SIG_UNBLOCK, &suspends, nullptr);
    ::sigprocmask(SIG_BLOCK, &suspends, nullptr);
    const bool agent_will_hear = is_pending(SIGCONT) || is_pending(SIGTSTP);
    if (!agent_will_hear) ::kill(agent_, SIGCONT);
  }

  void reap_all() {
    int status = 0;
    for (bool adopted = false; const auto pid = find_ended_child();) {
      if (*pid != agent_ && !std::exchange(adopted, true)) adopt_children();
      if (*pid != agent_ && is_bystander(*pid)) adopt_session_of(*pid);
      if (::waitpid(*pid, &status, WNOHANG) != *pid) return;
      bystanders_.remove(*pid);  // the number may be anybody's next
      if (*pid != agent_) continue;
      agent_status_ = status;
      agent_ = 0;
      return;  // what comes now is the job's
    }
  }

  // As long as the agent lives, what the job leaves comes to the agent. So what has come to us
  // until then is none of the job's: a bystander has left it.
  void adopt_children() {
    if (!children_.read()) return;
    // Not by waiting for it: its children come to us a moment before all its threads are gone, but
    // not as long as the first one, whose state this is, lives.
    const char state = look_at(agent_).state;
    if (state == '?' || state == 'Z' || state == 'X') return;
    bystanders_ = children_;
    bystanders_.remove(agent_);
  }

  // Also what a bystander leaves whose end we are not told of. The job's processes are in none of
  // these sessions, for the agent and each worker lead one of their own.
  [[nodiscard]] bool is_bystander(pid_t child) const {
    if (bystanders_.contains(child)) return true;
    const pid_t session = ::getsid(child);
    const auto others = bystanders_.pids();
    return session == ::getsid(0) ||
           std::any_of(others.begin(), others.end(),
                       [session](pid_t other) { return ::getsid(other) == session; });
  }

  // All that the agent leaves is, or becomes, our child. Each pass brings the children of those
  // killed by the last one.
  void sweep() {
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    const std::time_t give_up = now() + kSweepLimitSeconds;
    int found_none = 0;  // a list that is read while it changes may miss one
    for (reap_the_jobs(); has_children(); reap_the_jobs()) {
      if (now() > give_up || !children_.read()) return name_the_unkillable();
      const auto [killed, spared] = kill_the_jobs();
      found_none = killed ? 0 : found_none + 1;
      if (found_none >= kLooksBesideBystanders && spared) return;
      ::sigtimedwait(&child_ended, nullptr, &kBetweenPasses);
    }
  }

  void reap_the_jobs() {
    GroupKiller groups;
    for (int reaped = 0; reaped < kReapedAtOnce; ++reaped) {
      const auto pid = find_ended_child();
      if (!pid) return;
      if (is_bystander(*pid)) {
        adopt_session_of(*pid);
        bystanders_.remove(*pid);  // the number may be anybody's next
      } else {
        groups.kill_group_of(*pid, bystanders_.pids());
      }
      if (!reap(*pid)) return;
    }
  }

  // Its number is the session's only as long as somebody is known to be in it.
  void adopt_session_of(pid_t ended) {
    const pid_t session = ::getsid(ended);
    if (session == ::getsid(0) || !children_.read()) return;
    for (const pid_t pid : children_.pids()) {
      if (::getsid(pid) == session && !bystanders_.contains(pid)) bystanders_.add(pid);
    }
  }

  struct Pass {
    bool killed = false;
    bool spared = false;
  };

  Pass kill_the_jobs() {
    Pass pass;
    for (const pid_t pid : children_.pids()) {
      const bool spared = is_bystander(pid);
      if (!spared) ::kill(pid, SIGKILL);
      // Whoever traces the dead may keep them from us for ever.
      const bool dead = look_at(pid).state == 'Z';
      (spared || dead ? pass.spared : pass.killed) = true;
    }
    return pass;
  }

  void name_the_unkillable() {
    if (!children_.read()) {
      say("ddplaunch: /proc can't be read: processes that the workers started may still run.\n");
      return;
    }
    for (const pid_t pid : children_.pids()) {
      if (is_bystander(pid)) continue;
      const ProcessLook look = look_at(pid);
      say("ddplaunch: process %d (%s) could not be killed in %d s, it is in state %c.\n", pid,
          look.name.data(), kSweepLimitSeconds, look.state);
    }
  }

  [[nodiscard]] int exit_code() const {
    if (!WIFSIGNALED(agent_status_)) return WEXITSTATUS(agent_status_);
    const int signal = WTERMSIG(agent_status_);
    const char* name = ::sigabbrev_np(signal);
    say("ddplaunch: the launcher's own process (ddp-agent) was killed by SIG%s; its workers and "
        "all that they started have been killed too.\n",
        name != nullptr ? name : "?");
    return kSignalBase + signal;
  }

  static std::time_t now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
  }

  pid_t agent_;
  sigset_t signals_;
  std::span<const char> folder_note_;
  int agent_status_ = 0;
  ChildList bystanders_;
  ChildList children_;
};

// Started with stdin or another one closed, our own descriptors would take its number.
void fill_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
  }
}

// All zero. Only a convenience hangs on it, so there may be none.
std::span<char> shared_page() {
  constexpr std::size_t kSize = 4096;
  void* const page =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return {};
  return {static_cast<char*>(page), kSize};
}

// The guardian may have died before this process could watch it.
bool is_closed(int pipe) {
  pollfd look{pipe, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

}  // namespace

Guarded fork_agent() {
  fill_standard_descriptors();
  const SignalState found = look_at_signals();
  const sigset_t signals = block_signals(found);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::span<char> folder_note = shared_page();
  // A script that has started something and then became us (`monitor & exec ddplaunch …`) has left
  // us children that are no part of the job.
  ChildList bystanders;
  if (has_children()) bystanders.read();
  int pipe[2] = {-1, -1};
  const pid_t guardian = ::getpid();
  const pid_t agent = ::pipe2(pipe, O_CLOEXEC) == 0 ? ::fork() : -1;
  if (agent < 0) {
    const bool too_many = errno == EAGAIN;
    say("ddplaunch: cannot start: %s%s.\n", std::strerror(errno),
        too_many ? " (see ulimit -u and the process limit of the container)" : "");
    ::_exit(kLauncherFailed);
  }
  if (agent > 0) {
    ::close(pipe[0]);
    Guardian(agent, signals, folder_note, bystanders).run();
  }
  ::close(pipe[1]);
  ::setsid();
  ::prctl(PR_SET_NAME, "ddp-agent");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Until it watches the pipe there is nothing to clean up, and it may be busy looking up a name.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, guardian, 0)));
  // Alive now, so the number was still its own a moment ago.
  if (is_closed(pipe[0])) ::_exit(kLauncherFailed);
  return Guarded{UniqueFd(pipe[0]), guardian, std::move(pidfd), folder_note, signals, found};
}

void outlive_guardian() {
  ::prctl(PR_SET_PDEATHSIG, 0);
}

}  // namespace ddp::launcher
