#include "launcher/core/text_lines.h"

#include <algorithm>
#include <array>
#include <string>

namespace ddp::launcher {
namespace {

constexpr std::size_t kMostLooked = 16 * 1024;

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::array<std::string_view, 2> kLinks = {
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:"};

// PyTorch marks the lines of a traceback with "[rank3]: ".
std::string_view without_mark(std::string_view line) {
  constexpr std::string_view kMark = "[rank";
  if (line.substr(0, kMark.size()) != kMark) return line;
  const std::size_t end = line.find_first_not_of("0123456789", kMark.size());
  if (end == kMark.size() || line.substr(std::min(end, line.size()), 2) != "]:") return line;
  line.remove_prefix(end + 2);
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

// Said on the way out, after the trouble.
constexpr std::size_t kPartingLines = 2;

constexpr std::array<std::string_view, 19> kTrouble = {
    "error",       "fatal",  "exception", "abort",     "fail",       "panic",   "what():",
    "terminat",    "cannot", "can't",     "killed",    "closed",     "refused", "reset",
    "broken pipe", "lost",   "denied",    "timed out", "unavailable"};

std::string lower_case(std::string_view line) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

bool tells_of_trouble(std::string_view line) {
  const std::string lower = lower_case(line);
  return std::any_of(kTrouble.begin(), kTrouble.end(),
                     [&lower](std::string_view word) { return has(lower, word); });
}

// Of a stack, or a blank.
bool belongs_to_neighbours(std::string_view line) {
  return line.empty() || line.front() == ' ' || line.front() == '\t' || line.front() == '\r' ||
         line.substr(0, 7) == "frame #" || has(line, kTraceback);
}

bool is_link(std::string_view line) {
  return std::any_of(kLinks.begin(), kLinks.end(),
                     [line](std::string_view link) { return has(line, link); });
}

}  // namespace

std::vector<std::string_view> lines_at_end(std::string_view text) {
  if (text.size() > kMostLooked) text.remove_prefix(text.size() - kMostLooked);
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(without_mark(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::size_t first_exception(const std::vector<std::string_view>& lines) {
  std::size_t first = lines.size();
  bool in_traceback = false;
  bool linked = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (has(line, kTraceback)) {
      if (!linked) first = lines.size();
      in_traceback = true;
      linked = false;
    } else if (is_link(line)) {
      linked = true;
    } else if (in_traceback && !line.empty() && line.front() != ' ') {
      if (first == lines.size()) first = i;
      in_traceback = false;
    }
  }
  return first;
}

std::size_t last_words(const std::vector<std::string_view>& lines) {
  std::size_t begin = lines.size();
  std::size_t others = 0;
  for (std::size_t i = lines.size(); i-- > 0;) {
    if (tells_of_trouble(lines[i])) {
      begin = i;
    } else if (belongs_to_neighbours(lines[i])) {
      continue;
    } else if (begin < lines.size() || ++others > kPartingLines) {
      break;
    }
  }
  return begin;
}

}  // namespace ddp::launcher
