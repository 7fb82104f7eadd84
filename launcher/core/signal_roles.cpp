#include "launcher/core/signal_roles.h"

#include <algorithm>
#include <csignal>

namespace ddp::launcher {
namespace {

bool contains(const std::vector<std::int32_t>& signals, std::int32_t signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

bool requests_an_end(std::int32_t signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

SignalRole role_by_default(std::int32_t signal) {
  switch (signal) {
    case SIGKILL:
    case SIGSTOP:
    case SIGCHLD:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGPIPE:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
    case SIGXFSZ:
      return SignalRole::not_ours;
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
      return SignalRole::nothing;
    case SIGUSR1:
    case SIGUSR2:
      return SignalRole::passed_on;
    case SIGTSTP:
      return SignalRole::suspends;
    case SIGCONT:
      return SignalRole::resumes;
    default:
      return SignalRole::ends_job;
  }
}

}  // namespace

SignalRole role_of_signal(std::int32_t signal, const std::vector<std::int32_t>& listed) {
  const SignalRole role = role_by_default(signal);
  const bool can_end = role != SignalRole::not_ours && role != SignalRole::resumes;
  return can_end && contains(listed, signal) ? SignalRole::ends_job : role;
}

std::int32_t ending_signal_for_workers(std::int32_t signal,
                                       const std::vector<std::int32_t>& listed) {
  return requests_an_end(signal) || contains(listed, signal) ? signal : SIGTERM;
}

bool asks_to_hurry(std::int32_t signal) {
  return signal == SIGKILL || (signal != SIGHUP && requests_an_end(signal));
}

}  // namespace ddp::launcher
