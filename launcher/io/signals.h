// Signals of this process as events on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

namespace ddp::launcher {

class Signals {
 public:
  struct Callbacks {
    std::function<void(int signal)> on_signal;  // one of kPassedOnSignals
    std::function<void()> on_child_ended;       // a hint: several ends may come as one
  };

  // Unblocks what fork_agent() has blocked, so what came in between is delivered now.
  Signals(boost::asio::io_context& context, Callbacks callbacks);

 private:
  void wait();

  boost::asio::signal_set set_;
  Callbacks callbacks_;
};

}  // namespace ddp::launcher
