#include "launcher/io/signals.h"

#include <csignal>
#include <utility>

#include "launcher/io/guardian.h"

namespace ddp::launcher {

Signals::Signals(boost::asio::io_context& context, Callbacks callbacks)
    : set_(context, SIGCHLD), callbacks_(std::move(callbacks)) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  for (const int signal : kPassedOnSignals) {
    set_.add(signal);
    sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  wait();
}

void Signals::wait() {
  set_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (signal == SIGCHLD) {
      callbacks_.on_child_ended();
    } else {
      callbacks_.on_signal(signal);
    }
    wait();
  });
}

}  // namespace ddp::launcher
