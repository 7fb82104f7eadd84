// What the agent takes from the coordinator's orders: only what is wanted, reconcile() does the
// rest.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "launcher/core/agent.h"

namespace ddp::launcher {

using rendezvous::FailureKind;

void Agent::obey(const rendezvous::Wait& order, Instant now, AgentEffects& effects) {
  pausing_ = order.pausing;
  // Workers did run, so a node was lost: that is said at once.
  waiting_said_ = waiting_said_ || (group_ && group_->has_started() && !pausing_);
  waiting_ends_ = order.remaining ? std::optional(now + *order.remaining) : std::nullopt;
  wait_for(order.reason, now, effects);
}

// Somebody who looks at a launch that does nothing must be able to see why.
void Agent::wait_for(const std::string& reason, Instant now, AgentEffects& effects) {
  if (leaving() || reason == waiting_for_) {
    return;
  }
  waiting_for_ = reason;
  if (!waiting_since_) {
    waiting_since_ = now;
  }
  if (waiting_said_) {
    say_waiting(now, effects);
  } else {
    effects.emplace_back(Say{Say::Level::note, waiting_for_});
  }
}

void Agent::say_waiting(Instant now, AgentEffects& effects) {
  waiting_said_ = true;
  effects.emplace_back(Say{Say::Level::warning, waiting_text(now)});
}

void Agent::stop_waiting() {
  waiting_for_.clear();
  waiting_since_.reset();
  waiting_said_ = false;
  waiting_ends_.reset();
  pausing_ = false;
}

std::optional<Duration> Agent::pause_left(Instant now) const {
  if (!pausing_ || !waiting_ends_) {
    return std::nullopt;
  }
  return std::max(Duration{}, *waiting_ends_ - now);
}

bool Agent::waits_in_silence() const {
  return waiting_since_ && !waiting_said_ && !leaving();
}

void Agent::obey(const rendezvous::Run& order, Instant, AgentEffects& effects) {
  const Placement& placement = order.placement;
  if (leaving()) {
    return;
  }
  if (in_round(placement.round)) {
    stop_waiting();
    if (placement.master) {
      group_->learn_master(*placement.master);
    }
    if (order.loss) {
      group_->learn_loss(*order.loss, effects);
    }
    return;
  }
  // Rounds only go forward: the store and the workers of an older one are gone.
  if (group_ && placement.round.number < group_->placement().round.number) {
    return;
  }
  const bool stopped = next_ && next_->placement.round == placement.round && next_->stopped;
  next_ = NextRound{placement, stopped};
}

void Agent::obey(const rendezvous::Stop& order, Instant now, AgentEffects& effects) {
  if (in_round(order.round)) {
    const bool consequence = order.cause && order.cause->secondary;
    if (order.cause && (!group_->stop_wanted() || !consequence)) {
      note_cause(*order.cause);
    }
    // An interruption is no death: workers that save their state on SIGTERM still need each other.
    if (order.cause && order.cause->kind != FailureKind::interrupted) {
      group_->publish(*order.cause, effects);
    }
    group_->stop(SIGTERM, now, effects, consequence);
    return;
  }
  if (group_ && order.round.number < group_->placement().round.number) {
    return;
  }
  // A round that we never entered: the coordinator waits for us to say that it is over here.
  if (next_ && next_->placement.round == order.round) {
    next_->stopped = true;
  } else {
    Placement placement;
    placement.round = order.round;
    next_ = NextRound{placement, true};
  }
}

void Agent::obey(const rendezvous::Close& order, Instant, AgentEffects&) {
  if (!verdict_) {
    verdict_ = order.verdict;
  }
  next_.reset();
}

void Agent::obey(const rendezvous::Leave& order, Instant, AgentEffects&) {
  if (!verdict_) {
    verdict_ = order.verdict;
  }
  next_.reset();
  told_to_leave_ = true;
}

void Agent::obey(const rendezvous::Refuse& order, Instant now, AgentEffects&) {
  if (!ending_) {
    ending_ = Ending{order.exit_code, order.reason, {}, 0, now};
  }
  ending_->patience = {};  // it has closed the connection
  next_.reset();
}

}  // namespace ddp::launcher
