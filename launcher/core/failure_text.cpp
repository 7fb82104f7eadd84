#include "launcher/core/failure_text.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "launcher/core/signal_names.h"

namespace ddp::launcher {
namespace {

using rendezvous::Failure;
using rendezvous::FailureKind;

std::string place(const Failure& failure) {
  return failure.host.empty() ? std::string() : " on " + failure.host;
}

std::string worker(const Failure& failure) {
  if (failure.rank < 0) {
    return "a worker" + place(failure);
  }
  std::string text = "rank " + std::to_string(failure.rank);
  std::string more;
  if (failure.local_rank >= 0) {
    more = "local rank " + std::to_string(failure.local_rank);
  }
  if (failure.pid >= 0) {
    more += (more.empty() ? "pid " : ", pid ") + std::to_string(failure.pid);
  }
  if (!more.empty()) {
    text += " (" + more + ")";
  }
  return text + place(failure);
}

std::string node(const Failure& failure) {
  return failure.host.empty() ? std::string("a node") : "node " + failure.host;
}

std::string with_message(const std::string& text, const Failure& failure) {
  return failure.message.empty() ? text : text + ": " + failure.message;
}

}  // namespace

std::string describe_failure(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::worker_exited:
      return worker(failure) + " exited with code " + std::to_string(failure.exit_code);
    case FailureKind::worker_signaled:
      return worker(failure) + " was killed by " + signal_name(failure.signal) +
             (failure.core_dumped ? " (core dumped)" : "");
    case FailureKind::spawn_failed:
      return with_message(worker(failure) + " could not be started", failure);
    case FailureKind::interrupted:
      return "the launcher" + place(failure) + " was interrupted by " + signal_name(failure.signal);
    case FailureKind::node_lost:
      return with_message(node(failure) + " was lost", failure);
    case FailureKind::launcher_failed:
      return with_message("the launcher" + place(failure) + " failed", failure);
  }
  return "something failed";
}

namespace {

// The character at the front of `text`, and how many bytes it has; no character: one byte of no
// text.
struct Character {
  std::size_t length = 1;
  std::uint32_t code = 0;
  bool valid = false;
};

Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {};
  std::uint32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[length] || code > 0x10ffff || surrogate) return {};
  return {length, code, true};
}

// Controls, and what turns the direction of writing or begins a line.
bool moves_the_cursor(std::uint32_t code) {
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  return (code < 0x20 && code != '\t') || within(0x7f, 0x9f) || within(0x200e, 0x200f) ||
         within(0x2028, 0x202e) || within(0x2066, 0x2069);
}

}  // namespace

std::string printable(std::string_view line) {
  std::string shown;
  shown.reserve(line.size());
  while (!line.empty()) {
    const Character next = first_character(line);
    if (next.valid && !moves_the_cursor(next.code)) {
      shown += line.substr(0, next.length);
    } else {
      shown += '?';
    }
    line.remove_prefix(next.length);
  }
  return shown;
}

}  // namespace ddp::launcher
