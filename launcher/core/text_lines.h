// Other programs' texts by lines, and signs that a line has: for what is read out of workers' last
// words.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace ddp::launcher {

// A line that has both parts.
struct Sign {
  std::string_view what;
  std::string_view with = {};
};

[[nodiscard]] inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

[[nodiscard]] inline bool has(std::string_view line, const Sign& sign) {
  return has(line, sign.what) && (sign.with.empty() || has(line, sign.with));
}

// Only the end of a long text, so that the work is bounded; without the "[rank3]: " that PyTorch
// puts before the lines of a traceback.
[[nodiscard]] std::vector<std::string_view> lines_at_end(std::string_view text);

// Python prints the exceptions that led to each other oldest first. This is the place among `lines`
// of the oldest of the last such chain: what began it. lines.size() if there is none.
[[nodiscard]] std::size_t first_exception(const std::vector<std::string_view>& lines);

// Where a program's last words begin: the lines at the end that tell of trouble, with what belongs
// to them (stacks, a few lines said on the way out). What was said and survived before other lines
// came is no part of them. lines.size() if there are none.
[[nodiscard]] std::size_t last_words(const std::vector<std::string_view>& lines);

}  // namespace ddp::launcher
