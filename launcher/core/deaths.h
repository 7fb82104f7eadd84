// The deaths of one round on this node, and which of them was the first cause.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/time.h"

namespace ddp::launcher {

using rendezvous::Failure;
using rendezvous::Instant;

// A failure and when it happened, so that its age can be told later.
struct DatedFailure {
  Failure failure;
  Instant at;
};

// One unsuccessful end of a worker, and what is known of it beside the failure itself.
struct Death {
  Failure failure;                                          // `secondary` is filled in
  std::optional<std::chrono::microseconds> failed_at = {};  // wall time, by its error file
  std::chrono::microseconds told_at = {};                   // wall time of this report
  bool as_asked = false;                                    // we sent what it died of
};

// A death that tells of a lost peer never outranks one that doesn't; else the error files' times
// decide, else the order in which they were seen. What is seen in the same instant as the first
// cause, and isn't told apart from it by these, is a tie. A worker that ends after our stop has
// begun died of that, unless all we have is consequences, and this one speaks for itself.
class Deaths {
 public:
  // More than anyone reads.
  static constexpr std::size_t kMostTies = 64;

  // From `now` on deaths are answers to us. `consequence`: so is, by its own words, what we stop
  // for.
  void stop_begins(Instant now, bool consequence);
  void add(Death death, Instant now);
  [[nodiscard]] const std::optional<DatedFailure>& first_cause() const { return first_; }

 private:
  using WallTime = std::optional<std::chrono::microseconds>;
  struct Seen {
    std::int32_t rank;
    bool secondary;
    WallTime failed_at;
    Instant at;
  };

  [[nodiscard]] bool counts(const Death& death, Instant now) const;
  [[nodiscard]] bool failed_before_stop(const Death& death, Instant now) const;
  void note_tie(const Seen& other);

  std::vector<Seen> seen_;  // those that count
  std::optional<DatedFailure> first_;
  WallTime first_failed_at_;
  std::optional<Instant> stopping_since_;
  bool stops_for_consequence_ = false;
};

}  // namespace ddp::launcher
