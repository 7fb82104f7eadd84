#include "launcher/core/evidence.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <vector>

#include "launcher/core/text_lines.h"

namespace ddp::launcher {
namespace {

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

bool is_sign(std::string_view line) {
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [line](const Sign& sign) { return has(line, sign); });
}

bool names_carrier(std::string_view line) {
  return std::any_of(kCarriers.begin(), kCarriers.end(),
                     [line](std::string_view carrier) { return has(line, carrier); });
}

bool any_sign(const std::vector<std::string_view>& lines, std::size_t begin = 0) {
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(), is_sign);
}

}  // namespace

bool tells_of_lost_peer(std::string_view error_message, std::string_view last_output) {
  const std::vector<std::string_view> output = lines_at_end(last_output);
  const std::size_t exception = first_exception(output);
  if (exception < output.size()) {
    if (is_sign(output[exception])) return true;
    if (!names_carrier(output[exception])) return false;
  }
  // A loss that was reported and survived is no part of this death.
  const std::size_t begin = exception < output.size() ? 0 : last_words(output);
  return any_sign(lines_at_end(error_message)) || any_sign(output, begin);
}

bool is_crash_signal(std::int32_t signal) {
  constexpr std::array kCrashes = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  return std::find(kCrashes.begin(), kCrashes.end(), signal) != kCrashes.end();
}

}  // namespace ddp::launcher
