// A progress bar that redraws its own line.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>

namespace train_mlp {

// Draws nothing where the output is no terminal: a log file has no use for it.
class ProgressBar {
 public:
  ProgressBar(std::ostream& out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}

  // Redraws only when the picture changes.
  void show(const std::string& title, std::size_t done, std::size_t total);

  // Leaves an empty line, with the cursor at its start.
  void clear();

 private:
  std::ostream& out_;
  bool is_terminal_;
  std::string drawn_;
};

}  // namespace train_mlp
