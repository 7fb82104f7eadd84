#include "launcher/io/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

std::optional<pid_t> to_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

// opendir would allocate.
template <typename Visit>
bool for_each_number_in(const char* folder, Visit visit) {
  const UniqueFd fd(::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return false;
  alignas(dirent64) std::array<char, 4096> buffer;
  for (;;) {
    const long length = ::syscall(SYS_getdents64, fd.get(), buffer.data(), buffer.size());
    if (length < 0) return false;
    if (length == 0) return true;
    for (long at = 0; at < length;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      if (const auto number = to_pid(entry->d_name)) visit(*number);
      at += entry->d_reclen;
    }
  }
}

// "1234 (a name) with ) in it) S 17 …": the name can hold anything, so the last parenthesis counts.
struct Stat {
  std::array<char, 1024> buffer;
  std::string_view text;
  std::string_view after_name;

  bool read(pid_t pid) {
    std::array<char, 64> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
    const UniqueFd fd(::open(path.data(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return false;
    const ssize_t length = ::read(fd.get(), buffer.data(), buffer.size());
    if (length <= 0) return false;
    text = {buffer.data(), static_cast<std::size_t>(length)};
    const std::size_t end = text.rfind(')');
    if (end == std::string_view::npos || end + 4 >= text.size()) return false;
    after_name = text.substr(end + 2);
    return true;
  }
  [[nodiscard]] char state() const { return after_name[0]; }
  [[nodiscard]] pid_t parent() const {
    const std::string_view rest = after_name.substr(2);
    return to_pid(rest.substr(0, rest.find(' '))).value_or(0);
  }
  // The last field, for those who may trace the process.
  [[nodiscard]] std::optional<int> wait_status() const {
    std::string_view rest = after_name;
    while (!rest.empty() && rest.back() == '\n') rest.remove_suffix(1);
    const std::size_t space = rest.rfind(' ');
    return space == std::string_view::npos ? std::nullopt : to_pid(rest.substr(space + 1));
  }
  [[nodiscard]] std::string_view name() const {
    const std::size_t begin = text.find('(') + 1;
    return text.substr(begin, text.rfind(')') - begin);
  }
};

}  // namespace

void ChildList::add(pid_t pid) {
  if (count_ < kCapacity) pids_[count_++] = pid;
}

bool ChildList::contains(pid_t pid) const {
  const auto all = pids();
  return std::find(all.begin(), all.end(), pid) != all.end();
}

void ChildList::remove(pid_t pid) {
  count_ = static_cast<std::size_t>(
      std::remove(pids_.begin(), pids_.begin() + static_cast<std::ptrdiff_t>(count_), pid) -
      pids_.begin());
}

bool ChildList::read() {
  // The kernel's own lists cost nothing, but may be compiled out and may miss a child while they
  // change; so an empty one is believed only if there are no children.
  if (read_from_task_lists() && (count_ > 0 || !has_children())) return true;
  return read_from_every_process();
}

bool ChildList::read_from_task_lists() {
  count_ = 0;
  bool readable = true;
  const bool listed = for_each_number_in("/proc/self/task", [&](pid_t thread) {
    std::array<char, 64> path;
    std::snprintf(path.data(), path.size(), "/proc/self/task/%d/children", thread);
    const UniqueFd fd(::open(path.data(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) {
      readable = false;
      return;
    }
    std::array<char, 4096> buffer;
    std::size_t kept = 0;  // of a number that the last read cut in two
    for (;;) {
      const ssize_t length = ::read(fd.get(), buffer.data() + kept, buffer.size() - kept);
      if (length <= 0) return;
      std::string_view text(buffer.data(), kept + static_cast<std::size_t>(length));
      for (std::size_t space; (space = text.find(' ')) != std::string_view::npos;) {
        if (const auto pid = to_pid(text.substr(0, space))) add(*pid);
        text.remove_prefix(space + 1);
      }
      kept = text.size();
      std::memmove(buffer.data(), text.data(), kept);
    }
  });
  return listed && readable;
}

bool ChildList::read_from_every_process() {
  count_ = 0;
  const pid_t self = ::getpid();
  Stat stat;
  return for_each_number_in("/proc", [&](pid_t pid) {
    if (stat.read(pid) && stat.parent() == self) add(pid);
  });
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

std::optional<pid_t> find_ended_child() {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  return info.si_pid;
}

bool reap(pid_t pid) {
  return ::waitpid(pid, nullptr, WNOHANG) == pid;
}

void GroupKiller::kill_group_of(pid_t child, std::span<const pid_t> spared) {
  const pid_t group = ::getpgid(child);
  if (group <= 1 || std::find(killed_.begin(), killed_.end(), group) != killed_.end()) return;
  const bool is_spared =
      group == ::getpgrp() || std::any_of(spared.begin(), spared.end(),
                                          [group](pid_t pid) { return ::getpgid(pid) == group; });
  if (is_spared) return;
  ::kill(-group, SIGKILL);
  killed_[next_++ % kRemembered] = group;
}

bool ignores_signal(pid_t pid, int signal) {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/status", pid);
  const UniqueFd fd(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  const ssize_t length = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  if (length <= 0) return false;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kName = "SigIgn:\t";
  const std::size_t begin = text.find(kName);
  if (begin == std::string_view::npos) return false;
  std::uint64_t ignored = 0;
  std::from_chars(text.data() + begin + kName.size(), text.data() + text.size(), ignored, 16);
  return (ignored >> (signal - 1) & 1) != 0;
}

bool SparedSessions::contains(pid_t child) const {
  return !empty() && std::binary_search(sessions_.begin(), sessions_.end(), ::getsid(child));
}

void SparedSessions::tell_to_end(pid_t child) {
  if (std::find(told_.begin(), told_.end(), child) != told_.end()) return;
  told_[next_++ % kRemembered] = child;
  if (::getpgid(child) != ::getsid(child)) {
    ::kill(child, signal_);
    ::kill(child, SIGCONT);
  }
  if (signal_ != SIGTERM && ignores_signal(child, signal_)) ::kill(child, SIGTERM);
}

std::optional<int> wait_status_of_dead(pid_t child) {
  Stat stat;
  if (!stat.read(child) || stat.state() != 'Z') return std::nullopt;
  return stat.wait_status();
}

ProcessLook look_at(pid_t pid) {
  ProcessLook look;
  Stat stat;
  if (!stat.read(pid)) return look;
  const std::string_view name = stat.name().substr(0, look.name.size() - 1);
  look.name.fill('\0');
  std::copy(name.begin(), name.end(), look.name.begin());
  look.state = stat.state();
  return look;
}

}  // namespace ddp::launcher
