#include "launcher/io/status_line.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

using std::chrono::milliseconds;

// What is over sooner isn't worth a line that flickers.
constexpr milliseconds kFirst{250};
constexpr milliseconds kAgain{100};
// Most lines have seconds in them.
constexpr milliseconds kCount{1000};

constexpr std::size_t kDefaultWidth = 80;

std::size_t width_of_terminal() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefaultWidth;
}

// In a job that its shell has put into the background, or stopped, another process group has the
// terminal. Only those whose terminal it is may ask the terminal itself.
bool is_in_background(pid_t pid) {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t length = file.valid() ? ::read(file.get(), text.data(), text.size() - 1) : -1;
  if (length <= 0) return true;
  text[static_cast<std::size_t>(length)] = '\0';
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  const std::size_t name_end = all.rfind(')');
  if (name_end == std::string_view::npos) return true;
  char state = '?';
  int group = 0;
  int terminal = 0;
  int foreground = 0;
  // NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion,cert-err34-c)
  if (std::sscanf(text.data() + name_end + 1, " %c %*d %d %*d %d %d", &state, &group, &terminal,
                  &foreground) != 4) {
    return true;
  }
  const bool stopped = state == 'T';
  return stopped || (terminal != 0 && foreground != group);
}

}  // namespace

StatusLine::StatusLine(boost::asio::io_context& context, Console& console, pid_t guardian,
                       Words words)
    : console_(console), guardian_(guardian), words_(std::move(words)), timer_(context) {
  console_.on_status_due([this] { draw_after(kAgain); });
}

StatusLine::~StatusLine() {
  console_.on_status_due(nullptr);
  hide();
}

void StatusLine::hide() {
  timer_.cancel();
  waiting_ = false;
  console_.show_status("", 0);
}

void StatusLine::look() {
  if (words_().empty()) return hide();
  draw_after(console_.status_shown() ? kAgain : kFirst);
}

// What is due earlier stays so.
void StatusLine::draw_after(milliseconds pause) {
  const auto due = std::chrono::steady_clock::now() + pause;
  if (waiting_ && due_ <= due) return;
  waiting_ = true;
  due_ = due;
  timer_.expires_at(due);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) draw();
  });
}

void StatusLine::draw() {
  waiting_ = false;
  const std::string words = words_();
  if (words.empty()) return hide();
  if (is_in_background(guardian_)) {
    console_.forget_status();
  } else {
    console_.show_status(words, width_of_terminal());
  }
  draw_after(kCount);
}

}  // namespace ddp::launcher
