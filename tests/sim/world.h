// The simulated world's time, chance and record: everything else in tests/sim happens through it.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

#include "rendezvous/core/random_bits.h"
#include "rendezvous/core/time.h"

namespace ddp::sim {

using rendezvous::Duration;
using rendezvous::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A promise was broken: the run ends.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class World {
 public:
  World(std::uint64_t seed, bool tracing) : random_(seed), tracing_(tracing) {}

  [[nodiscard]] Instant now() const { return now_; }
  void at(Instant when, std::function<void()> action);
  void after(Duration delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }
  // Does what comes next; false if nothing does.
  bool step();
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

  // 0 … bound-1.
  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool chance(double probability);
  Duration between(Duration shortest, Duration longest);

  // Part of the record of the run; `text()` is only asked for when tracing.
  template <typename Text>
  void record(std::uint64_t what, Text&& text) {
    mix(what);
    if (tracing_) print(text());
  }
  // Equal for two runs that went the same way.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Event {
    Instant when;
    std::uint64_t order;
    std::function<void()> action;
    friend bool operator<(const Event& a, const Event& b) {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };

  void mix(std::uint64_t what);
  void print(const std::string& text) const;

  rendezvous::RandomBits random_;
  Instant now_{};
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t fingerprint_ = 0xCBF29CE484222325u;
  bool tracing_;
};

// One that can be stopped for a while, as by SIGSTOP: what is meant for it meanwhile happens when
// it goes on, in order.
class Freezable {
 public:
  explicit Freezable(World& world) : world_(world) {}
  void freeze(Duration how_long);
  void thaw();
  // What it missed never happens.
  void forget() { missed_.clear(); }
  [[nodiscard]] bool frozen() const { return world_.now() < frozen_until_; }
  // Now, or when it goes on.
  void run(std::function<void()> action);

 private:
  void catch_up();

  World& world_;
  Instant frozen_until_{};
  std::vector<std::function<void()>> missed_;
};

}  // namespace ddp::sim
