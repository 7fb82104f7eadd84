#include "launcher/io/strangers.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <utility>

namespace ddp::launcher {
namespace {

constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{50};
constexpr int kMostNamed = 16;

bool all_are_dead(const std::vector<pid_t>& children) {
  return std::all_of(children.begin(), children.end(),
                     [](pid_t child) { return look_at(child).state == 'Z'; });
}

std::string seconds_text(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

}  // namespace

Strangers::Strangers(boost::asio::io_context& context, Callbacks callbacks, Limits limits)
    : callbacks_(std::move(callbacks)), limits_(limits), context_(context), timer_(context) {}

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
  for (int reaped = 0; reaped < limits_.reaped_at_once; ++reaped) {
    const auto pid = find_ended_child();
    if (!pid || callbacks_.is_worker(*pid)) return true;
    // While workers run, it may be theirs.
    if (on_gone_ && !spared_.contains(*pid)) groups.kill_group_of(*pid);
    if (!reap(*pid)) return true;
  }
  boost::asio::post(context_, [this] { child_ended(); });
  return false;
}

void Strangers::sweep(std::vector<pid_t> spared, int signal, std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  sessions_ = std::move(spared);
  std::sort(sessions_.begin(), sessions_.end());
  spared_ = SparedSessions(sessions_, signal);
  give_up_at_ = std::chrono::steady_clock::now() + limits_.give_up_after;
  pause_ = kFirstPause;
  pass();
}

void Strangers::spare_nobody() {
  if (!on_gone_) return;
  spared_ = {};
  give_up_at_ = std::chrono::steady_clock::now() + limits_.give_up_after;
  pause_ = kFirstPause;
  pass();
}

// What is killed here leaves its own children to us, so one pass after another until none is left.
void Strangers::pass() {
  const bool reaped_all = reap_ended();
  const bool out_of_time = std::chrono::steady_clock::now() >= give_up_at_;
  // Listing children takes the square of how many there are. Whoever makes so many that there are
  // always more has no more time for it than others.
  if (!reaped_all && !(out_of_time && spared_.empty())) return;
  const std::vector<pid_t> left = find();
  if (left.empty()) return finish();
  // Where only the spared are left, the end of each calls us.
  if (!kill_all_but_spared(left)) return;
  if (out_of_time) {
    if (spared_.empty()) give_up(left);
    return;
  }
  // Somebody traces them: nothing of theirs is alive, and when we can reap them is not ours to say.
  if (pause_ == kLongestPause && all_are_dead(left)) return finish();
  timer_.expires_after(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && on_gone_) pass();
  });
}

bool Strangers::kill_all_but_spared(const std::vector<pid_t>& left) {
  GroupKiller groups;
  bool any = false;
  for (const pid_t pid : left) {
    if (spared_.contains(pid)) {
      spared_.tell_to_end(pid);
      continue;
    }
    groups.kill_group_of(
        pid);  // what it forks at this moment is caught by that, or by a later pass
    ::kill(pid, SIGKILL);
    any = true;
  }
  return any;
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
  int named = 0;
  for (const pid_t pid : left) {
    const ProcessLook look = look_at(pid);
    if (look.state == 'Z' || look.state == 'X') continue;  // only not reaped yet
    if (named++ == kMostNamed) {
      callbacks_.on_warning("more processes than these could not be killed.");
      break;
    }
    callbacks_.on_warning("process " + std::to_string(pid) + " (" + look.name.data() +
                          "), which a worker left behind, could not be killed in " +
                          seconds_text(limits_.give_up_after) + " s: it " +
                          (::kill(pid, 0) != 0 && errno == EPERM
                               ? std::string("runs as a user whom we may not kill")
                               : std::string("is in state ") + look.state) +
                          ". It may still run.");
  }
  finish();
}

void Strangers::finish() {
  timer_.cancel();
  boost::asio::post(context_, std::exchange(on_gone_, nullptr));
}

}  // namespace ddp::launcher
