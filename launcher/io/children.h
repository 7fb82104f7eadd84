// Lists this process's own children, whoever started them, and looks at the dead among them.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace ddp::launcher {

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

 private:
  bool read_from_task_lists();
  bool read_from_every_process();
  void add(pid_t pid);

  std::array<pid_t, kCapacity> pids_{};
  std::size_t count_ = 0;
};

// Children that have ended but aren't reaped count.
[[nodiscard]] bool has_children();

// A child that has ended and isn't reaped; it stays so. Which of several: the kernel's choice.
[[nodiscard]] std::optional<pid_t> find_ended_child();

// True if that child had ended and is gone now.
bool reap(pid_t pid);

// Kills the process groups of dead children: whoever forks and leaves, all the time, is caught by
// his dead, which hold the group's number until they are reaped. One for each pass over the dead.
class GroupKiller {
 public:
  // SIGKILL for that child's group, but for our own group and those of `spared`. Once a group: they
  // may be thousands, and the kernel goes through all of them.
  void kill_group_of(pid_t ended, std::span<const pid_t> spared = {});

 private:
  static constexpr std::size_t kRemembered = 64;

  std::array<pid_t, kRemembered> killed_{};
  std::size_t next_ = 0;
};

// Name and state letter of a process, for messages; "?" where they can't be had.
struct ProcessLook {
  std::array<char, 32> name{'?'};
  char state = '?';
};
[[nodiscard]] ProcessLook look_at(pid_t pid);

}  // namespace ddp::launcher
