// How workers are brought to an end: a signal to each, a grace period, then SIGKILL to all that is
// theirs. What a worker leaves that ended within the period has what is left of it.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::launcher {

struct SendSignal {
  rendezvous::LocalRank local_rank;
  std::int32_t signal;
  bool to_end = false;  // what the worker leaves, should it end of this, gets the same
};                      // to the worker's own process
struct SendKill {
  rendezvous::LocalRank local_rank;
};  // to everything of the worker's
using StopEffect = std::variant<SendSignal, SendKill>;

class StopLadder {
 public:
  explicit StopLadder(rendezvous::Duration grace);

  // `signal` first (then SIGCONT, so that a stopped worker can act on it), SIGKILL after the grace
  // period. Begun again while active (another signal is passed on): the period is not prolonged.
  [[nodiscard]] std::vector<StopEffect> begin(const std::vector<rendezvous::LocalRank>& alive,
                                              std::int32_t signal, rendezvous::Instant now);
  // Asked twice (a second Ctrl-C): SIGKILL at once to those still alive.
  [[nodiscard]] std::vector<StopEffect> hurry();
  // Between these two the workers stand still, and so does the grace period.
  void pause(rendezvous::Instant now);
  void resume(rendezvous::Instant now);
  void exited(rendezvous::LocalRank local_rank);
  [[nodiscard]] std::vector<StopEffect> on_time(rendezvous::Instant now);
  // Ended after they were told to and before SIGKILL: what they left may go on until next_deadline.
  [[nodiscard]] const std::vector<rendezvous::LocalRank>& obeyed() const { return obeyed_; }
  [[nodiscard]] std::optional<rendezvous::Instant> next_deadline() const;
  [[nodiscard]] bool active() const;  // some worker is being stopped

 private:
  rendezvous::Duration grace_;
  std::vector<rendezvous::LocalRank> alive_;
  std::vector<rendezvous::LocalRank> obeyed_;
  std::optional<rendezvous::Instant> kill_at_;
  std::optional<rendezvous::Duration> left_;  // of the grace period, while paused
  bool active_ = false;
  bool killed_ = false;
};

}  // namespace ddp::launcher
