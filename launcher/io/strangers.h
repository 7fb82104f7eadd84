// Children of ours that we didn't start: what workers left behind. Reaps them as they end, kills
// them when told to.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/io/children.h"

namespace ddp::launcher {

class Strangers {
 public:
  struct Callbacks {
    std::function<bool(pid_t pid)> is_worker;  // alive or ended, but not reaped by its owner
    std::function<void(const std::string& text)> on_warning;
  };

  struct Limits {
    std::chrono::milliseconds give_up_after = kSweepLimit;
    int reaped_at_once = 1000;  // then the loop has its turn
  };

  Strangers(boost::asio::io_context& context, Callbacks callbacks, Limits limits);
  Strangers(boost::asio::io_context& context, Callbacks callbacks)
      : Strangers(context, std::move(callbacks), Limits()) {}

  // Hint: some child has ended (SIGCHLD), or a worker has been reaped.
  void child_ended();

  // Kills strangers until none is left, then calls `on_gone` from the loop. Gives up in time on
  // what can't be killed, and says what that is. Those of the sessions `spared` are told to end by
  // `signal`, and waited for.
  void sweep(std::vector<pid_t> spared, int signal, std::function<void()> on_gone);
  void spare_nobody();  // from now on, in a sweep that is under way

 private:
  bool reap_ended();  // false: there are more, another turn of the loop is asked for
  void pass();
  [[nodiscard]] bool kill_all_but_spared(const std::vector<pid_t>& left);  // false: none to kill
  [[nodiscard]] std::vector<pid_t> find();
  void give_up(const std::vector<pid_t>& left);
  void finish();

  Callbacks callbacks_;
  Limits limits_;
  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  ChildList children_;
  std::function<void()> on_gone_;  // set: a sweep is under way
  std::vector<pid_t> sessions_;
  SparedSessions spared_;  // by sessions_
  std::chrono::steady_clock::time_point give_up_at_;
  std::chrono::milliseconds pause_{};
  bool readable_ = true;
};

}  // namespace ddp::launcher
