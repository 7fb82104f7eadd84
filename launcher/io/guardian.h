// The process that the user starts: forks the agent, passes signals and the exit code on, and
// leaves nothing behind if the agent dies.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <span>

#include "launcher/io/signal_state.h"
#include "launcher/io/unique_fd.h"

namespace ddp::launcher {

// What the agent knows of its guardian.
struct Guarded {
  UniqueFd guardian_pipe;  // at end of file as soon as the guardian is dead
  pid_t guardian = -1;
  UniqueFd guardian_pidfd;  // may be missing on an old kernel
  // Shared with the guardian. The agent writes the path of its folder of temporary files here,
  // NUL-terminated: if it is killed, the guardian removes what is empty in it. May be empty.
  std::span<char> folder_note;
  // What the guardian hands to the agent, which decides what it means: all that have a meaning for
  // a job or would kill, and SIGCHLD, which is the agent's own. Without those that the user's shell
  // set to be ignored (nohup, a background job), which stay ignored. Blocked in both.
  sigset_t signals{};
  SignalState found{};  // before anything was changed: workers get it
};

// Call it first in main, before any thread, descriptor or big allocation: the caller becomes the
// guardian and stays as small as it is now. Returns in the agent only: its own session, child
// subreaper, named `ddp-agent`; killed with its guardian.
[[nodiscard]] Guarded fork_agent();

// Sent by the agent: the guardian stops, as by SIGTSTP, so that its shell sees it. None that stops:
// such a signal would make the kernel forget a SIGCONT that is on its way.
constexpr int kStopGuardian = SIGURG;

// From now on the agent watches the pipe and cleans up itself: before it starts anything.
void outlive_guardian();

}  // namespace ddp::launcher
