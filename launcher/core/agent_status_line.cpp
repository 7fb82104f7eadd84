// What the agent waits for, in a few words.
#include <algorithm>
#include <chrono>

#include "launcher/core/agent.h"

namespace ddp::launcher {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using Stage = WorkerGroup::Stage;

// Of more ranks, or ranges of them, the first ones are named.
constexpr int kMaxNamed = 6;

std::string number_of_workers(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " worker" : " workers");
}

// Whole seconds, and never 0 while there is time left.
std::string left_until(Instant at, Instant now) {
  const auto left = duration_cast<milliseconds>(std::max(at - now, Duration{})).count();
  return std::to_string((left + 999) / 1000) + " s";
}

std::string time_since(Instant at, Instant now) {
  const auto seconds = duration_cast<std::chrono::seconds>(now - at).count();
  if (seconds < 120) {
    return std::to_string(seconds) + " s";
  }
  return seconds < 7200 ? std::to_string(seconds / 60) + " min"
                        : std::to_string(seconds / 3600) + " h";
}

// "rank 3", "ranks 0, 2-5, 7"
std::string name_ranks(const std::vector<std::int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int named = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    if (named > 0) {
      text += ", ";
    }
    if (named++ == kMaxNamed) {
      return text + "...";
    }
    text += std::to_string(ranks[i]);
    if (last > i) {
      text += "-" + std::to_string(ranks[last]);
    }
    i = last + 1;
  }
  return text;
}

std::string stopping(const WorkerGroup& group, Instant now) {
  const std::size_t left = group.alive().size();
  std::string text = "stopping: " + std::to_string(left) + " of " +
                     number_of_workers(group.size()) + (left == 1 ? " is left" : " are left");
  if (group.kill_at()) {
    text += ", SIGKILL in " + left_until(*group.kill_at(), now);
  } else if (group.write_off_at()) {
    text += " after SIGKILL, given up in " + left_until(*group.write_off_at(), now);
  }
  return text;
}

// The shorter list is named: who has ended, or who still runs.
std::string some_have_ended(const WorkerGroup& group, Instant now) {
  std::vector<std::int32_t> running;
  for (const LocalRank rank : group.alive()) {
    running.push_back(group.placement().first_rank.value + rank.value);
  }
  std::vector<std::int32_t> ended;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(group.size()); ++i) {
    const std::int32_t rank = group.placement().first_rank.value + i;
    if (!std::binary_search(running.begin(), running.end(), rank)) {
      ended.push_back(rank);
    }
  }
  const std::string ago = time_since(*group.last_end(), now) + " ago";
  const std::string total = " of " + number_of_workers(group.size());
  if (ended.size() <= running.size()) {
    return name_ranks(ended) + (ended.size() == 1 ? " has ended " : " have ended, the last one ") +
           ago + "; " + std::to_string(running.size()) + total +
           (running.size() == 1 ? " still runs" : " still run");
  }
  return name_ranks(running) + (running.size() == 1 ? " still runs; " : " still run; ") +
         std::to_string(ended.size()) + total + " have ended, the last one " + ago;
}

std::string of_workers(const WorkerGroup& group, Instant now) {
  switch (group.stage()) {
    case Stage::running:
      if (group.stop_wanted()) {
        return stopping(group, now);
      }
      return group.alive().size() < group.size() ? some_have_ended(group, now) : std::string();
    case Stage::sweeping:
      return "ending what workers left behind" +
             (group.kill_at() ? ", SIGKILL in " + left_until(*group.kill_at(), now)
                              : std::string());
    default:
      return {};
  }
}

}  // namespace

std::string Agent::waiting_text(Instant now) const {
  return waiting_for_ +
         (waiting_ends_ ? " (at most " + left_until(*waiting_ends_, now) + ")" : std::string());
}

std::string Agent::status_line(Instant now) const {
  if (exited_) {
    return {};
  }
  if (suspended_) {
    return "suspended";
  }
  const Stage stage = group_ ? group_->stage() : Stage::gone;
  if (stage == Stage::running || stage == Stage::sweeping) {
    return of_workers(*group_, now);
  }
  if (leaving()) {
    return "waiting for the coordinator's last word";
  }
  if (const auto left = pause_left(now); left && group_) {
    return "restarting in " + left_until(now + *left, now) + " (restart " +
           std::to_string(restart_count_ + 1) + " of " +
           std::to_string(group_->placement().max_restarts) + ")";
  }
  if (!waiting_for_.empty()) {
    return waiting_text(now);
  }
  if (stage == Stage::placed || stage == Stage::spawning) {
    return "starting " + number_of_workers(static_cast<std::size_t>(config_.workers));
  }
  if (stage == Stage::succeeded && group_->placement().group_world_size > 1) {
    return "all workers of this node have ended, other nodes still run";
  }
  return {};
}

}  // namespace ddp::launcher
