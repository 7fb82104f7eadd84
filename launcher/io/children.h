// Lists this process's own children, whoever started them, and looks at the dead among them.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>

namespace ddp::launcher {

// Whoever kills what is left of a job, agent, guardian or the namespace's init, gives up after this
// long on what doesn't die (state D).
inline constexpr std::chrono::seconds kSweepLimit{10};

// Allocates nothing, so that the guardian can use it when memory has run out. An unreaped child's
// pid can't be reused: what is listed here can be signalled by its number.
class ChildList {
 public:
  // At most this many at a time; whoever sweeps reads again until nothing is left.
  static constexpr std::size_t kCapacity = 2048;

  // False if /proc can't be read.
  bool read();
  [[nodiscard]] std::span<const pid_t> pids() const { return {pids_.data(), count_}; }
  [[nodiscard]] bool contains(pid_t pid) const;
  void remove(pid_t pid);
  void add(pid_t pid);

 private:
  bool read_from_task_lists();
  bool read_from_every_process();

  std::array<pid_t, kCapacity> pids_{};
  std::size_t count_ = 0;
};

// Children that have ended but aren't reaped count.
[[nodiscard]] bool has_children();

// A child that has ended and isn't reaped; it stays so. Which of several: the kernel's choice.
[[nodiscard]] std::optional<pid_t> find_ended_child();

// True if that child had ended and is gone now.
bool reap(pid_t pid);

// Kills the process groups of children, also of dead ones: whoever forks and leaves, all the time,
// is caught by his dead, which hold the group's number until they are reaped. One for each pass.
class GroupKiller {
 public:
  // SIGKILL for that child's group, but for our own group and those of `spared`. Once a group: they
  // may be thousands, and the kernel goes through all of them.
  void kill_group_of(pid_t child, std::span<const pid_t> spared = {});

 private:
  static constexpr std::size_t kRemembered = 64;

  std::array<pid_t, kRemembered> killed_{};
  std::size_t next_ = 0;
};

// True if /proc says so.
[[nodiscard]] bool ignores_signal(pid_t pid, int signal);

// What workers left that ended as they were told to: found by the workers' sessions, whose numbers
// nobody gets while somebody is in them. It has got the signal with the worker's process group.
class SparedSessions {
 public:
  SparedSessions() = default;
  // `sessions` are sorted, and outlive this.
  SparedSessions(std::span<const pid_t> sessions, int signal)
      : sessions_(sessions), signal_(signal) {}

  [[nodiscard]] bool empty() const { return sessions_.empty(); }
  [[nodiscard]] bool contains(pid_t child) const;
  // For one of them, as it becomes ours. It gets the signal if the group's didn't reach it: once,
  // for a program's second SIGTERM may be its last. Shells make what they start in the background
  // ignore SIGINT: that gets SIGTERM.
  void tell_to_end(pid_t child);

 private:
  static constexpr std::size_t kRemembered = 256;

  std::span<const pid_t> sessions_;
  int signal_ = 0;
  std::array<pid_t, kRemembered> told_{};
  std::size_t next_ = 0;
};

// How a child ended that somebody traces: the kernel shows it to its parent only when the tracer
// has let go of it. As waitpid says it; nothing if it hasn't ended, or /proc doesn't tell.
[[nodiscard]] std::optional<int> wait_status_of_dead(pid_t child);

// Name and state letter of a process, for messages; "?" where they can't be had.
struct ProcessLook {
  std::array<char, 32> name{'?'};
  char state = '?';
};
[[nodiscard]] ProcessLook look_at(pid_t pid);

}  // namespace ddp::launcher
