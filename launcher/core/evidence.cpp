#include "launcher/core/evidence.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <vector>

namespace ddp::launcher {
namespace {

constexpr std::size_t kMostLooked = 16 * 1024;

// A line that has both.
struct Sign {
  std::string_view what;
  std::string_view with = {};
};

constexpr std::array kSigns = {
    // Our SDK: the type, when nobody catches it, and the texts that a program may print.
    Sign{"ddp::v1::PeerLost"},
    Sign{"ddp::PeerLost"},
    Sign{"rank ", " is lost ("},
    Sign{"rank ", " has lost rank "},
    Sign{"rank ", " has left the group ("},
    Sign{"the node ", " is lost ("},
    Sign{"the job's store at ", " is lost: "},
    // Gloo.
    Sign{"Connection closed by peer ["},
    Sign{"gloo", "Connection closed by peer"},
    Sign{"gloo", "Connection reset by peer"},
    Sign{"gloo", "Broken pipe"},
    // PyTorch's store: a socket's error without a number is not Python's own.
    Sign{"RuntimeError: Connection reset by peer"},
    Sign{"RuntimeError: Broken pipe"},
    Sign{"DistNetworkError", "Connection reset by peer"},
    Sign{"DistNetworkError", "Broken pipe"},
    Sign{"TCPStore", "Connection reset by peer"},
    Sign{"TCPStore", "Broken pipe"},
    Sign{"SocketImpl(", "Connection reset by peer"},
    Sign{"SocketImpl(", "Broken pipe"},
    Sign{"Connection was likely closed. Did the remote server shutdown or crash?"},
    // NCCL.
    Sign{"ncclRemoteError"},
    Sign{"remote process exited or there was a network error"},
    Sign{"Connection closed by remote peer"},
    Sign{"NCCL", "Connection reset by peer"},
    Sign{"NCCL", "Broken pipe"},
    // MPI and UCX.
    Sign{"MPI_ERR_PROC_FAILED"},
    Sign{"MPI_ERR_REVOKED"},
    Sign{"Connection reset by remote peer"},
};

// Names of what carries collectives: an exception that has one of them may be a consequence even if
// it doesn't say so itself.
constexpr std::array<std::string_view, 8> kCarriers = {
    "gloo", "NCCL", "ProcessGroup", "TCPStore", "torch.distributed", "Dist", "c10d", "ddp::"};

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::array<std::string_view, 2> kLinks = {
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_sign(std::string_view line) {
  return std::any_of(kSigns.begin(), kSigns.end(), [line](const Sign& sign) {
    return has(line, sign.what) && (sign.with.empty() || has(line, sign.with));
  });
}

bool names_carrier(std::string_view line) {
  return std::any_of(kCarriers.begin(), kCarriers.end(),
                     [line](std::string_view carrier) { return has(line, carrier); });
}

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

bool any_sign(const std::vector<std::string_view>& lines) {
  return std::any_of(lines.begin(), lines.end(), is_sign);
}

bool is_link(std::string_view line) {
  return std::any_of(kLinks.begin(), kLinks.end(),
                     [line](std::string_view link) { return has(line, link); });
}

// Python prints the exceptions that led to each other oldest first. This is the oldest of the last
// such chain: what began it. A process that falls apart often loses its peers on the way.
std::optional<std::string_view> first_exception(const std::vector<std::string_view>& lines) {
  std::optional<std::string_view> first;
  bool in_traceback = false;
  bool linked = false;
  for (const std::string_view line : lines) {
    if (has(line, kTraceback)) {
      if (!linked) first.reset();
      in_traceback = true;
      linked = false;
    } else if (is_link(line)) {
      linked = true;
    } else if (in_traceback && !line.empty() && line.front() != ' ') {
      if (!first) first = line;
      in_traceback = false;
    }
  }
  return first;
}

}  // namespace

bool tells_of_lost_peer(std::string_view error_message, std::string_view last_output) {
  const std::vector<std::string_view> output = lines_at_end(last_output);
  if (const auto exception = first_exception(output)) {
    if (is_sign(*exception)) return true;
    if (!names_carrier(*exception)) return false;
  }
  return any_sign(lines_at_end(error_message)) || any_sign(output);
}

bool is_crash_signal(std::int32_t signal) {
  constexpr std::array kCrashes = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  return std::find(kCrashes.begin(), kCrashes.end(), signal) != kCrashes.end();
}

}  // namespace ddp::launcher
