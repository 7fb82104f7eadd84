// The last lines of what a worker has written, as a person would have seen them, for the verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddp::launcher {

// Takes any bytes. Of a line that is written over (a progress bar) the last state counts; colours
// and cursor movements are left out, other control characters become '?'. Holds no memory before
// the first byte.
class OutputTail {
 public:
  static constexpr std::size_t kMaxBytes = 8 * 1024;
  static constexpr std::size_t kMaxLines = 20;
  static constexpr std::size_t kMaxLine = 1024;  // the start of a longer one is kept, and "..."

  void add(std::string_view bytes);
  // Lines with '\n' between them, none at the end.
  [[nodiscard]] std::string text() const;

 private:
  enum class Escape : std::uint8_t {
    none,
    begun,       // after ESC
    sequence,    // ESC [ …, up to a letter
    text,        // ESC ] …, up to BEL or ESC backslash: a title, a link
    ending,      // ESC within such a text
    one_letter,  // ESC ( B: a character set
  };

  void take(char c);
  [[nodiscard]] bool in_escape(char c);
  void end_line();
  void trim();

  std::string lines_;  // ended ones, each with its '\n'
  std::string line_;   // the one that is being written
  std::size_t count_ = 0;
  bool cut_ = false;       // some of line_ is missing
  bool returned_ = false;  // a carriage return: what comes next writes over line_
  Escape escape_ = Escape::none;
};

}  // namespace ddp::launcher
