// What a console shows, in order: workers' bytes as they are, whole lines of ours, and below them a
// status line that comes and goes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddp::launcher {

// Composes bytes and writes none. Each function returns what is to be written first, or instead.
class ConsoleStream {
 public:
  // Before workers' bytes, which are not changed.
  [[nodiscard]] std::string before_output(std::string_view bytes);
  // A line of ours, or several, each with its newline: they begin in the first column.
  [[nodiscard]] std::string lines(std::string_view text);

  // Draws `status` below all else, in place of the last one, cut to `width` columns; empty: none.
  // Not while a line of a worker's is unfinished: nothing then, and false from `can_draw`.
  [[nodiscard]] std::string draw(std::string_view status, std::size_t width);
  // Somebody else has written to the terminal meanwhile: what was drawn is not ours any more.
  void forget() { drawn_.clear(); }
  [[nodiscard]] bool can_draw() const { return at_line_start_; }
  [[nodiscard]] const std::string& drawn() const { return drawn_; }

 private:
  [[nodiscard]] std::string erase();

  bool at_line_start_ = true;
  std::string drawn_;
};

}  // namespace ddp::launcher
