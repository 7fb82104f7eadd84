#include "launcher/core/deaths.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "launcher/core/evidence.h"

namespace ddp::launcher {
namespace {

using WallTime = std::optional<std::chrono::microseconds>;

// PyTorch writes whole seconds: such a time means any moment of that second.
std::chrono::microseconds latest(std::chrono::microseconds time) {
  constexpr std::chrono::seconds kSecond{1};
  return time % kSecond == std::chrono::microseconds{} ? time + kSecond : time;
}

bool surely_earlier(const WallTime& a, const WallTime& b) {
  return a && b && *a != *b && latest(*a) <= *b;
}

bool is_crash(const Death& death) {
  const Failure& failure = death.failure;
  return !death.as_asked && (is_crash_signal(failure.signal) || failure.signal == SIGKILL);
}

}  // namespace

void Deaths::stop_begins(Instant now, bool consequence) {
  if (stopping_since_) return;
  stopping_since_ = now;
  stops_for_consequence_ = consequence;
}

bool Deaths::failed_before_stop(const Death& death, Instant now) const {
  return death.failed_at && death.told_at - latest(*death.failed_at) > now - *stopping_since_;
}

bool Deaths::counts(const Death& death, Instant now) const {
  if (!stopping_since_) return true;
  const bool only_consequences = first_ ? first_->failure.secondary : stops_for_consequence_;
  return only_consequences && !death.failure.secondary &&
         (is_crash(death) || failed_before_stop(death, now));
}

void Deaths::add(Death death, Instant now) {
  if (!counts(death, now)) return;
  const Seen seen{death.failure.rank, death.failure.secondary, death.failed_at, now};
  const bool is_first = !first_ || (first_->failure.secondary && !seen.secondary) ||
                        (first_->failure.secondary == seen.secondary &&
                         surely_earlier(seen.failed_at, first_failed_at_));
  if (is_first) {
    first_ = DatedFailure{std::move(death.failure), now};
    first_failed_at_ = seen.failed_at;
    std::for_each(seen_.begin(), seen_.end(), [this](const Seen& other) { note_tie(other); });
  } else {
    note_tie(seen);
  }
  seen_.push_back(seen);
}

void Deaths::note_tie(const Seen& other) {
  Failure& first = first_->failure;
  const bool told_apart = other.at != first_->at || other.secondary != first.secondary ||
                          surely_earlier(first_failed_at_, other.failed_at);
  if (!told_apart && first.tied_ranks.size() < kMostTies) first.tied_ranks.push_back(other.rank);
}

}  // namespace ddp::launcher
