#include "launcher/core/output_tail.h"

#include <algorithm>

namespace ddp::launcher {
namespace {

// A flood costs no more than this much of each piece: what came before can't be in the tail, unless
// all that follows is one line, written over and over.
constexpr std::size_t kLooksBack = 2 * OutputTail::kMaxBytes;

constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

}  // namespace

void OutputTail::add(std::string_view bytes) {
  if (bytes.size() > kLooksBack) {
    bytes.remove_prefix(bytes.size() - kLooksBack);
    escape_ = Escape::none;
  }
  for (const char c : bytes) {
    take(c);
  }
}

void OutputTail::take(char c) {
  if (in_escape(c)) {
    return;
  }
  switch (c) {
    case '\n':
      end_line();
      return;
    case '\r':
      returned_ = true;
      return;
    case '\b':
      if (!line_.empty()) {
        line_.pop_back();
      }
      return;
    case kBell:
      return;
    default:
      break;
  }
  if (returned_) {
    returned_ = false;
    cut_ = false;
    line_.clear();
  }
  if (line_.size() == kMaxLine) {
    cut_ = true;
    return;
  }
  line_.push_back(is_control(c) && c != '\t' ? '?' : c);
}

// True: the character belongs to an escape sequence. The end of a line ends every sequence, so that
// binary data can't make lines disappear.
bool OutputTail::in_escape(char c) {
  if (c == '\n') {
    escape_ = Escape::none;
    return false;
  }
  const auto end_if = [this](bool ended) { escape_ = ended ? Escape::none : escape_; };
  switch (escape_) {
    case Escape::none:
      if (c != kEscape) {
        return false;
      }
      escape_ = Escape::begun;
      return true;
    case Escape::begun:
      escape_ = c == '['                           ? Escape::sequence
                : c == ']'                         ? Escape::text
                : c == '(' || c == ')' || c == '#' ? Escape::one_letter
                                                   : Escape::none;
      return true;
    case Escape::sequence:
      end_if(c >= 0x40 && c <= 0x7e);
      return true;
    case Escape::text:
      end_if(c == kBell);
      if (c == kEscape) {
        escape_ = Escape::ending;
      }
      return true;
    case Escape::ending:
    case Escape::one_letter:
      escape_ = Escape::none;
      return true;
  }
  return false;
}

void OutputTail::end_line() {
  lines_ += line_;
  lines_ += cut_ ? "...\n" : "\n";
  line_.clear();
  cut_ = false;
  returned_ = false;
  ++count_;
  trim();
}

void OutputTail::trim() {
  std::size_t begin = 0;
  while (count_ > kMaxLines || lines_.size() - begin > kMaxBytes) {
    begin = lines_.find('\n', begin) + 1;
    --count_;
  }
  lines_.erase(0, begin);
}

std::string OutputTail::text() const {
  OutputTail whole = *this;
  if (!whole.line_.empty()) {
    whole.end_line();
  }
  std::string& text = whole.lines_;
  // Empty lines at the end push what matters out of sight.
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

}  // namespace ddp::launcher
