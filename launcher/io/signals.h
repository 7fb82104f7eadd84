// Signals of this process as events on the loop.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <csignal>
#include <functional>

namespace ddp::launcher {

// They stay blocked and are read from a descriptor: a worker gets no handlers that would have to be
// taken from it, and each signal says who sent it.
class Signals {
 public:
  struct Callbacks {
    // The sender is 0 for the kernel.
    std::function<void(int signal, pid_t sender)> on_signal;
    std::function<void()> on_child_ended;  // a hint: several ends may come as one
  };

  // `signals` are blocked since fork_agent(): what came in between is told now. Throws
  // std::system_error.
  Signals(boost::asio::io_context& context, const sigset_t& signals, Callbacks callbacks);

 private:
  void wait();
  void read();

  boost::asio::posix::stream_descriptor descriptor_;
  Callbacks callbacks_;
};

}  // namespace ddp::launcher
