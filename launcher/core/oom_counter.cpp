#include "launcher/core/oom_counter.h"

#include <algorithm>
#include <charconv>

namespace ddp::launcher {
namespace {

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// "cpu,memory" has it, "memory2" hasn't.
bool lists_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

MemoryCgroups memory_cgroups(std::string_view text) {
  MemoryCgroups found;
  while (!text.empty()) {
    // number:controllers:path, where version 2 names no controllers
    const std::string_view line = take_line(text);
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty() && line.substr(0, first) == "0") found.v2 = path;
    if (lists_memory(controllers)) found.v1 = path;
  }
  return found;
}

std::optional<std::uint64_t> count_of_oom_kills(std::string_view text) {
  constexpr std::string_view kName = "oom_kill ";
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.substr(0, kName.size()) != kName) continue;
    std::uint64_t count = 0;
    const auto [end, error] =
        std::from_chars(line.data() + kName.size(), line.data() + line.size(), count);
    if (error == std::errc() && end == line.data() + line.size()) return count;
  }
  return std::nullopt;
}

}  // namespace ddp::launcher
