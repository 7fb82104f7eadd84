#include "progress_bar.h"

namespace train_mlp {

void ProgressBar::show(const std::string& title, std::size_t done, std::size_t total) {
  if (!is_terminal_ || total == 0) return;
  constexpr std::size_t kCells = 30;
  const std::size_t filled = done * kCells / total;
  const std::string percent = std::to_string(done * 100 / total);
  const std::string picture = title + " [" + std::string(filled, '#') +
                              std::string(kCells - filled, '.') + "] " +
                              std::string(3 - percent.size(), ' ') + percent + " %";
  if (picture == drawn_) return;
  // A shorter picture must not leave the end of a longer one behind.
  const std::size_t leftover = drawn_.size() > picture.size() ? drawn_.size() - picture.size() : 0;
  out_ << '\r' << picture << std::string(leftover, ' ') << std::flush;
  drawn_ = picture;
}

void ProgressBar::clear() {
  if (drawn_.empty()) return;
  out_ << '\r' << std::string(drawn_.size(), ' ') << '\r' << std::flush;
  drawn_.clear();
}

}  // namespace train_mlp
