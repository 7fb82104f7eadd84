#include "launcher/io/strangers.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>

namespace ddp::launcher {
namespace {

constexpr std::chrono::seconds kGiveUpAfter{10};
constexpr int kReapedAtOnce = 1000;  // then the loop has its turn
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{50};

}  // namespace

Strangers::Strangers(boost::asio::io_context& context, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), context_(context), timer_(context) {}

void Strangers::child_ended() {
  if (on_gone_) {
    pass();
  } else {
    reap_ended();
  }
}

bool Strangers::reap_ended() {
  // The kernel shows one ended child at a time. A worker among them is its owner's, who calls again
  // when it has been reaped; so what hides behind it is not forgotten.
  GroupKiller groups;
  for (int reaped = 0; reaped < kReapedAtOnce; ++reaped) {
    const auto pid = find_ended_child();
    if (!pid || callbacks_.is_worker(*pid)) return true;
    if (on_gone_) groups.kill_group_of(*pid);  // while workers run, it may be theirs
    if (!reap(*pid)) return true;
  }
  boost::asio::post(context_, [this] { child_ended(); });
  return false;
}

void Strangers::sweep(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  give_up_at_ = std::chrono::steady_clock::now() + kGiveUpAfter;
  pause_ = kFirstPause;
  pass();
}

// What is killed here leaves its own children to us, so one pass after another until none is left.
void Strangers::pass() {
  if (!reap_ended()) return;  // listing children takes the square of how many there are
  const std::vector<pid_t> left = find();
  if (left.empty()) return finish();
  if (std::chrono::steady_clock::now() >= give_up_at_) return give_up(left);
  for (const pid_t pid : left) ::kill(pid, SIGKILL);
  timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && on_gone_) pass();
  });
}

std::vector<pid_t> Strangers::find() {
  if (!has_children()) return {};
  readable_ = children_.read();
  std::vector<pid_t> strangers;
  for (const pid_t pid : children_.pids()) {
    if (!callbacks_.is_worker(pid)) strangers.push_back(pid);
  }
  return strangers;
}

void Strangers::give_up(const std::vector<pid_t>& left) {
  for (const pid_t pid : left) {
    const ProcessLook look = look_at(pid);
    callbacks_.on_warning("process " + std::to_string(pid) + " (" + look.name.data() +
                          "), which a worker left behind, could not be killed in " +
                          std::to_string(kGiveUpAfter.count()) + " s: it is in state " +
                          look.state + ". It may still run.");
  }
  finish();
}

void Strangers::finish() {
  timer_.cancel();
  boost::asio::post(context_, std::exchange(on_gone_, nullptr));
}

}  // namespace ddp::launcher
