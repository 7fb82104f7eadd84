// The process that the user starts: forks the agent, passes signals and the exit code on, and
// leaves nothing behind if the agent dies.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <span>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {

// What the guardian hands to the agent; blocked in the agent until its loop takes them.
inline constexpr std::array kPassedOnSignals{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// What the agent knows of its guardian.
struct Guarded {
  UniqueFd guardian_pipe;  // at end of file as soon as the guardian is dead
  // Shared with the guardian. The agent writes the path of its folder of temporary files here,
  // NUL-terminated: if it is killed, the guardian removes what is empty in it. May be empty.
  std::span<char> folder_note;
};

// Call it first in main, before any thread, descriptor or big allocation: the caller becomes the
// guardian and stays as small as it is now. Returns in the agent only: its own session, child
// subreaper, named `ddp-agent`, with kPassedOnSignals and SIGCHLD blocked; killed with its
// guardian.
[[nodiscard]] Guarded fork_agent();

// From now on the agent watches the pipe and cleans up itself: before it starts anything.
void outlive_guardian();

}  // namespace ddp::launcher
