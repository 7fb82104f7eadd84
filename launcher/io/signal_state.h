// What of signals a program is started with, and leaves to those that it starts.
#pragma once

#include <csignal>

namespace ddp::launcher {

// An empty one: all at their defaults, none blocked.
struct SignalState {
  sigset_t ignored{};
  sigset_t blocked{};
};

// Of the calling thread. Allocates nothing.
[[nodiscard]] inline SignalState look_at_signals() {
  SignalState state;
  ::sigemptyset(&state.ignored);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      ::sigaddset(&state.ignored, signal);
    }
  }
  ::sigprocmask(SIG_BLOCK, nullptr, &state.blocked);
  return state;
}

}  // namespace ddp::launcher
