// Reads what Linux says of memory cgroups and of kills for want of memory. Text only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddp::launcher {

// Of /proc/self/cgroup: the path of this process in version 1's memory hierarchy and in version
// 2's; absent where it has none.
struct MemoryCgroups {
  std::optional<std::string> v1;
  std::optional<std::string> v2;
};
[[nodiscard]] MemoryCgroups memory_cgroups(std::string_view text);

// The number behind "oom_kill" in memory.events, memory.oom_control or /proc/vmstat.
[[nodiscard]] std::optional<std::uint64_t> count_of_oom_kills(std::string_view text);

}  // namespace ddp::launcher
