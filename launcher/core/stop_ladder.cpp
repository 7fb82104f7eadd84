#include "launcher/core/stop_ladder.h"

#include <algorithm>
#include <csignal>

namespace ddp::launcher {

using rendezvous::Instant;
using rendezvous::LocalRank;

StopLadder::StopLadder(rendezvous::Duration grace) : grace_(grace) {}

std::vector<StopEffect> StopLadder::begin(const std::vector<LocalRank>& alive, std::int32_t signal,
                                          Instant now) {
  std::vector<StopEffect> effects;
  if (killed_ || alive.empty()) {
    return effects;
  }
  if (!active_) {
    kill_at_ = now + grace_;
  }
  active_ = true;
  alive_ = alive;
  for (const LocalRank rank : alive_) {
    effects.emplace_back(SendSignal{rank, signal, true});
  }
  for (const LocalRank rank : alive_) {
    effects.emplace_back(SendSignal{rank, SIGCONT});
  }
  return effects;
}

std::vector<StopEffect> StopLadder::hurry() {
  std::vector<StopEffect> effects;
  if (killed_ || (!active_ && obeyed_.empty())) {
    return effects;
  }
  killed_ = true;
  obeyed_.clear();
  kill_at_.reset();
  left_.reset();
  for (const LocalRank rank : alive_) {
    effects.emplace_back(SendKill{rank});
  }
  return effects;
}

void StopLadder::pause(Instant now) {
  if (kill_at_) {
    left_ = *kill_at_ - now;
    kill_at_.reset();
  }
}

void StopLadder::resume(Instant now) {
  if (left_) {
    kill_at_ = now + *left_;
    left_.reset();
  }
}

void StopLadder::exited(LocalRank local_rank) {
  const auto left = std::remove(alive_.begin(), alive_.end(), local_rank);
  if (left == alive_.end()) {
    return;
  }
  alive_.erase(left, alive_.end());
  active_ = !alive_.empty();
  if (!killed_) {
    obeyed_.push_back(local_rank);
  }
}

std::vector<StopEffect> StopLadder::on_time(Instant now) {
  if (!kill_at_ || now < *kill_at_) {
    return {};
  }
  return hurry();
}

std::optional<Instant> StopLadder::next_deadline() const {
  return kill_at_;
}

bool StopLadder::active() const {
  return active_;
}

}  // namespace ddp::launcher
