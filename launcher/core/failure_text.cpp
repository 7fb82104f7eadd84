#include "launcher/core/failure_text.h"

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

std::string printable(std::string line) {
  const auto byte = [&line](std::size_t i) {
    return i < line.size() ? static_cast<unsigned char>(line[i]) : 0U;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool control = (byte(i) < 0x20 && line[i] != '\t') || byte(i) == 0x7f;
    // The controls from 0x80 on, as UTF-8.
    const bool second_control = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;
    if (second_control) line.erase(i, 1);
    if (control || second_control) line[i] = '?';
  }
  return line;
}

}  // namespace ddp::launcher
