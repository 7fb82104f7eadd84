#include "launcher/io/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace ddp::launcher {
namespace {

int open_descriptor(const sigset_t& signals) {
  const int fd = ::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  return fd;
}

}  // namespace

Signals::Signals(boost::asio::io_context& context, const sigset_t& signals, Callbacks callbacks)
    : descriptor_(context, open_descriptor(signals)), callbacks_(std::move(callbacks)) {
  wait();
}

void Signals::wait() {
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (error) return;
                           read();
                           wait();
                         });
}

void Signals::read() {
  std::array<signalfd_siginfo, 16> taken;
  const ssize_t length = ::read(descriptor_.native_handle(), taken.data(), sizeof(taken));
  if (length <= 0) return;
  const std::size_t count = static_cast<std::size_t>(length) / sizeof(taken[0]);
  for (std::size_t i = 0; i < count; ++i) {
    const int signal = static_cast<int>(taken[i].ssi_signo);
    if (signal == SIGCHLD) {
      callbacks_.on_child_ended();
    } else {
      callbacks_.on_signal(signal, static_cast<pid_t>(taken[i].ssi_pid));
    }
  }
}

}  // namespace ddp::launcher
