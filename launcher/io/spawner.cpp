#include "launcher/io/spawner.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "launcher/io/argument_limits.h"
#include "launcher/io/signals_blocked.h"

// The C library's own name of clone. The other one is ThreadSanitizer's in its builds, which takes
// every clone for a fork and cleans up after it in the child, and so in our memory.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace ddp::launcher {
namespace {

constexpr std::size_t kStackSize = 64 * 1024;
constexpr std::size_t kStacksSize = 2 * kStackSize;  // a worker's and a go-between's

// The kernel's own sigaction, for the raw call: the C library's function isn't safe in a child that
// shares our memory.
struct KernelSigaction {
  std::uintptr_t handler;
  unsigned long flags;
  std::uintptr_t restorer;
  std::uint64_t mask;
};

// Lives in the parent's memory, which the child shares until exec.
struct ChildPlan {
  pid_t parent;
  int control_page;
  StandardStreams streams;
  unsigned first_unneeded;  // above all that the child needs of our descriptors
  const rlimit* limit_of_files;
  const std::vector<std::pair<int, sighandler_t>>* changed_signals;
  const sigset_t* blocked_signals;
  char* const* candidates;  // ends with a null pointer
  char* const* arguments;
  char* const* environment;
  volatile int error;
  const Birthplace* birthplace;  // or null
  void* stack;                   // its upper end
  volatile pid_t pid;            // where a go-between makes it
  volatile int pidfd;
  volatile bool refused;  // by the namespace, not by the program
  volatile pid_t own_number;
};

// Sanitizers' bookkeeping is the parent's, and the child would write into it.
#define DDP_RAW_CHILD __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

[[noreturn]] DDP_RAW_CHILD void fail(ChildPlan& plan, int error) {
  plan.error = error;
  for (;;) ::syscall(SYS_exit_group, 127);
}

DDP_RAW_CHILD void set_descriptors(ChildPlan& plan) {
  // The child is born with our table of descriptors, and leaves it with a copy of the low part
  // only: copying and closing all of a big launcher's would make N workers cost N².
  if (::syscall(SYS_close_range, plan.first_unneeded, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    fail(plan, errno);
  }
  const StandardStreams& streams = plan.streams;
  if (streams.out >= 0 && ::syscall(SYS_dup3, streams.out, 1, 0) < 0) fail(plan, errno);
  if (streams.err >= 0 && ::syscall(SYS_dup3, streams.err, 2, 0) < 0) fail(plan, errno);
  unsigned end = kWorkerControlPageFd;
  const int page = plan.control_page;
  if (page >= 0) {
    ++end;
    if (page == kWorkerControlPageFd) {
      ::syscall(SYS_fcntl, page, F_SETFD, 0);
    } else if (::syscall(SYS_dup3, page, kWorkerControlPageFd, 0) < 0) {
      fail(plan, errno);
    }
  }
  if (end < plan.first_unneeded && ::syscall(SYS_close_range, end, ~0U, 0) != 0) fail(plan, errno);
}

DDP_RAW_CHILD void set_signals(ChildPlan& plan) {
  const std::pair<int, sighandler_t>* const changed = plan.changed_signals->data();
  for (std::size_t i = 0; i < plan.changed_signals->size(); ++i) {
    const KernelSigaction action{reinterpret_cast<std::uintptr_t>(changed[i].second), 0, 0, 0};
    ::syscall(SYS_rt_sigaction, changed[i].first, &action, nullptr, sizeof(std::uint64_t));
  }
  // Its first word is the kernel's own set.
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, plan.blocked_signals, nullptr, sizeof(std::uint64_t));
}

DDP_RAW_CHILD void die_with(ChildPlan& plan, pid_t parent) {
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The parent may have died before the kernel was told to kill us with it.
  if (::syscall(SYS_getppid) != parent) fail(plan, ESRCH);
}

DDP_RAW_CHILD int run_child(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  set_descriptors(plan);
  plan.own_number = static_cast<pid_t>(::syscall(SYS_setsid));
  if (plan.streams.terminal) {
    ::syscall(SYS_ioctl, plan.streams.err >= 0 ? 2 : 1, TIOCSCTTY, 0);
  }
  // Out of a namespace the parent can't be seen; but there init watches it.
  die_with(plan, plan.birthplace == nullptr ? plan.parent : 0);
  if (plan.limit_of_files != nullptr) {
    ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, plan.limit_of_files, nullptr);
  }
  set_signals(plan);
  int error = ENOENT;
  for (char* const* path = plan.candidates; *path != nullptr; ++path) {
    ::syscall(SYS_execve, *path, plan.arguments, plan.environment);
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      fail(plan, errno);
    }
  }
  fail(plan, error);
}

// A child that enters the namespaces, so that nobody else has to, makes the worker in them as a
// child of our own, and is gone.
DDP_RAW_CHILD int run_go_between(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  const Birthplace& place = *plan.birthplace;
  plan.refused = true;
  die_with(plan, plan.parent);
  if (::syscall(SYS_setns, place.init, place.namespaces) != 0) fail(plan, errno);
  if ((place.namespaces & CLONE_NEWNS) != 0) {
    if (::syscall(SYS_fchdir, place.root) != 0) fail(plan, errno);
    if (::syscall(SYS_chroot, ".") != 0) fail(plan, errno);
    if (::syscall(SYS_fchdir, place.folder) != 0) fail(plan, errno);
  }
  int pidfd = -1;
  const int pid = ::__clone(
      run_child, plan.stack,
      CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PARENT | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  if (pid < 0) fail(plan, errno);
  plan.refused = false;
  plan.pid = pid;
  plan.pidfd = pidfd;
  for (;;) ::syscall(SYS_exit_group, 0);
}

// Both share our memory until they are gone or have become another program, on stacks of their own
// so that they can't disturb ours. Their errors are in the plan; errno is set if there is no child.
pid_t clone_child(ChildPlan& plan) {
  constexpr int kFlags = CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD;
  const SignalsBlocked blocked;  // no handler of ours may run in a child that shares our memory
  if (plan.birthplace == nullptr) {
    int pidfd = -1;
    const pid_t pid = ::__clone(run_child, plan.stack, kFlags | CLONE_PIDFD, &plan, &pidfd);
    plan.pidfd = pidfd;
    return pid;
  }
  char* const second = static_cast<char*>(plan.stack) - kStackSize;
  const pid_t go_between = ::__clone(run_go_between, second, kFlags, &plan);
  if (go_between < 0) return go_between;
  ::waitpid(go_between, nullptr, 0);
  return plan.pid;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_block(const WorkerCommand& command) {
  std::vector<std::string> block;
  block.reserve(command.environment.size() + command.additions.size());
  const auto add = [&block](const std::string& name, const std::string& value) {
    std::string& entry = block.emplace_back();
    entry.reserve(name.size() + value.size() + 1);
    entry.append(name).append(1, '=').append(value);
  };
  for (const auto& [name, value] : command.environment) {
    if (command.additions.find(name) == command.additions.end()) add(name, value);
  }
  for (const auto& [name, value] : command.additions) add(name, value);
  return block;
}

// Nothing is wrong with the program, so the code is not one of those that say so.
SpawnRefusal no_room(int error) {
  std::string advice;
  if (error == EMFILE || error == ENFILE) advice = " (raise the limit of open files: ulimit -n)";
  if (error == EAGAIN) advice = " (see ulimit -u and the process limit of the container)";
  if (error == ENOMEM) advice = " (this host or its container is out of memory)";
  return {
      rendezvous::exit_code::kLauncherFailed,
      "no further process could be started: " + std::generic_category().message(error) + advice};
}

SpawnRefusal no_birth(int error) {
  std::string reason = "no process can be started in the workers' PID namespace: ";
  if (error == ESRCH || error == ENOMEM) {
    reason += "its first process (ddp-init) is gone, killed by somebody";
  } else {
    reason += std::generic_category().message(error);
  }
  return {rendezvous::exit_code::kLauncherFailed, reason};
}

std::vector<std::pair<int, sighandler_t>> signals_to_change(const SignalState& wanted) {
  std::vector<std::pair<int, sighandler_t>> changes;
  for (int signal = 1; signal < NSIG; ++signal) {
    const sighandler_t handler = sigismember(&wanted.ignored, signal) == 1 ? SIG_IGN : SIG_DFL;
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != handler) {
      changes.emplace_back(signal, handler);
    }
  }
  return changes;
}

}  // namespace

Spawner::Spawner(int control_page, SpawnSettings settings)
    : control_page_(control_page),
      settings_(settings),
      changed_signals_(signals_to_change(settings_.signals)) {
  stack_ = ::mmap(nullptr, kStacksSize, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
}

// False: errno says why.
bool Spawner::take_down(StandardStreams& streams) {
  const auto move = [](int from, UniqueFd& to) {
    if (to.valid()) return ::dup3(from, to.get(), O_CLOEXEC) >= 0;
    to.reset(::fcntl(from, F_DUPFD_CLOEXEC, 0));
    return to.valid();
  };
  const bool joined = streams.out == streams.err;
  if (streams.err >= 0) {
    if (!move(streams.err, low_[0])) return false;
    streams.err = low_[0].get();
  }
  if (joined) {
    streams.out = streams.err;
  } else if (streams.out >= 0) {
    if (!move(streams.out, low_[1])) return false;
    streams.out = low_[1].get();
  }
  return true;
}

Spawner::~Spawner() {
  ::munmap(stack_, kStacksSize);
}

const std::vector<std::string>& Spawner::candidates_of(const WorkerCommand& command) {
  const auto path = command.environment.find("PATH");
  std::pair<std::string, std::string> wanted(command.arguments.front(),
                                             path == command.environment.end() ? "" : path->second);
  if (!found_ || wanted != searched_) {
    found_ = find_program(command.arguments.front(), command.environment);
    searched_ = std::move(wanted);
  }
  return *found_;
}

std::variant<SpawnedProcess, SpawnRefusal> Spawner::start(const WorkerCommand& command) {
  const std::vector<std::string>& files = candidates_of(command);
  if (files.empty()) return explain_exec_error(command.arguments.front(), files, ENOENT);

  StandardStreams streams = command.streams;
  if (!take_down(streams)) return no_room(errno);
  const int highest = std::max({kWorkerControlPageFd - 1, control_page_, streams.out, streams.err});
  const std::vector<std::string> block = environment_block(command);
  const std::vector<char*> candidates = pointers_to(files);
  const std::vector<char*> arguments = pointers_to(command.arguments);
  const std::vector<char*> environment = pointers_to(block);
  ChildPlan plan{::getpid(),
                 control_page_,
                 streams,
                 static_cast<unsigned>(highest) + 1,
                 settings_.limit_of_files ? &*settings_.limit_of_files : nullptr,
                 &changed_signals_,
                 &settings_.signals.blocked,
                 candidates.data(),
                 arguments.data(),
                 environment.data(),
                 0,
                 settings_.birthplace ? &*settings_.birthplace : nullptr,
                 static_cast<char*>(stack_) + kStacksSize,
                 -1,
                 -1,
                 false,
                 -1};
  const pid_t pid = clone_child(plan);
  if (plan.refused) return no_birth(plan.error);
  if (pid < 0) return no_room(errno);
  UniqueFd owned(plan.pidfd);
  if (plan.error != 0) {
    ::waitpid(pid, nullptr, 0);  // It has exited already.
    if (plan.error == E2BIG) return explain_too_long(command.arguments, block);
    return explain_exec_error(command.arguments.front(), files, plan.error);
  }
  UniqueFd second(::fcntl(owned.get(), F_DUPFD_CLOEXEC, 0));
  if (!second.valid()) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return no_room(error);
  }
  return SpawnedProcess{pid, plan.own_number, std::move(owned), std::move(second)};
}

}  // namespace ddp::launcher
