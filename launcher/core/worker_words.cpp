#include "launcher/core/worker_words.h"

#include <algorithm>
#include <string_view>

#include "launcher/core/failure_text.h"
#include "launcher/core/text_lines.h"

namespace ddp::launcher {
namespace {

using Lines = std::vector<std::string_view>;

constexpr std::size_t kMostLines = 15;
constexpr std::size_t kMostOfMessage = 8;
constexpr std::size_t kAfterException = 3;  // lines that may follow the telling one
constexpr std::size_t kLongestLine = 240;
constexpr const char* kLeftOut = "...";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Never within a character.
std::string cut(std::string_view line) {
  if (line.size() <= kLongestLine) return printable(line);
  std::size_t end = kLongestLine;
  const auto continues = [&line](std::size_t i) {
    return (static_cast<unsigned char>(line[i]) & 0xc0U) == 0x80U;
  };
  while (end > kLongestLine - 4 && continues(end)) --end;
  return printable(line.substr(0, end)) + kLeftOut;
}

Lines without_blanks(Lines lines) {
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_blank), lines.end());
  return lines;
}

// What the error file says is mostly the last line of the traceback as well.
void take_out(const Lines& message, Lines& output) {
  if (message.empty()) return;
  const auto found = std::search(output.begin(), output.end(), message.begin(), message.end());
  if (found != output.end()) {
    output.erase(found, found + static_cast<std::ptrdiff_t>(message.size()));
  }
}

std::vector<std::string> show(const Lines& lines, std::size_t first, std::size_t count) {
  std::vector<std::string> shown;
  const std::size_t end = std::min(first + count, lines.size());
  if (first > 0 && first < end) shown.emplace_back(kLeftOut);
  for (std::size_t i = first; i < end; ++i) shown.push_back(cut(lines[i]));
  if (end < lines.size()) shown.emplace_back(kLeftOut);
  return shown;
}

// The last ones, unless what began it stands before them: a library's own stack may follow it.
std::size_t first_to_show(const Lines& lines, std::size_t count) {
  if (lines.size() <= count) return 0;
  const std::size_t last = lines.size() - count;
  const std::size_t exception = first_exception(lines);
  if (exception >= lines.size() || exception >= last) return last;
  const std::size_t end = std::min(exception + 1 + kAfterException, lines.size());
  return end > count ? end - count : 0;
}

}  // namespace

WorkerWords words_of(const rendezvous::Failure& failure) {
  const Lines message = without_blanks(lines_at_end(failure.message));
  Lines output = without_blanks(lines_at_end(failure.last_output));
  take_out(message, output);
  WorkerWords words;
  words.message = show(message, 0, kMostOfMessage);
  const std::size_t left = kMostLines - std::min(words.message.size(), kMostLines);
  words.output = show(output, first_to_show(output, left), left);
  return words;
}

}  // namespace ddp::launcher
