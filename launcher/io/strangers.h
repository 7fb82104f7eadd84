// Children of ours that we didn't start: what workers left behind. Reaps them as they end, kills
// them when told to.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launcher/io/children.h"

namespace ddp::launcher {

class Strangers {
 public:
  struct Callbacks {
    std::function<bool(pid_t pid)> is_worker;  // alive or ended, but not reaped by its owner
    std::function<void(const std::string& text)> on_warning;
  };

  Strangers(boost::asio::io_context& context, Callbacks callbacks);

  // Hint: some child has ended (SIGCHLD), or a worker has been reaped.
  void child_ended();

  // Kills strangers until none is left, then calls `on_gone` from the loop. Gives up after 10 s on
  // what can't be killed, and says what that is.
  void sweep(std::function<void()> on_gone);

 private:
  bool reap_ended();  // false: there are more, another turn of the loop is asked for
  void pass();
  [[nodiscard]] std::vector<pid_t> find();
  void give_up(const std::vector<pid_t>& left);
  void finish();

  Callbacks callbacks_;
  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  ChildList children_;
  std::function<void()> on_gone_;  // set: a sweep is under way
  std::chrono::steady_clock::time_point give_up_at_;
  std::chrono::milliseconds pause_{};
  bool readable_ = true;
};

}  // namespace ddp::launcher
