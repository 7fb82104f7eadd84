#include "launcher/core/console_stream.h"

#include <utility>

namespace ddp::launcher {
namespace {

// To the first column, and clear to the end of the line.
constexpr std::string_view kErase = "\r\x1b[K";

// Bytes of `text` that fill no more than that many columns, if each character fills one.
std::string_view cut_to(std::string_view text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins_character && used++ == columns) {
      return text.substr(0, i);
    }
  }
  return text;
}

}  // namespace

std::string ConsoleStream::erase() {
  return std::exchange(drawn_, {}).empty() ? std::string() : std::string(kErase);
}

std::string ConsoleStream::before_output(std::string_view bytes) {
  if (bytes.empty()) {
    return {};
  }
  at_line_start_ = bytes.back() == '\n';
  return erase();
}

std::string ConsoleStream::lines(std::string_view text) {
  std::string result = erase();
  if (!at_line_start_) {
    result += '\n';
  }
  at_line_start_ = true;
  return result.append(text);
}

std::string ConsoleStream::draw(std::string_view status, std::size_t width) {
  // The last column stays free: some terminals go on to the next line once it is filled.
  const std::string_view shown = cut_to(status, width > 0 ? width - 1 : 0);
  if (shown == drawn_ || !at_line_start_) {
    return {};
  }
  std::string result = erase();
  drawn_ = shown;
  return result.append(shown);
}

}  // namespace ddp::launcher
