#include "tests/sim/world.h"

#include <iostream>
#include <utility>

namespace ddp::sim {

void World::at(Instant when, std::function<void()> action) {
  events_.push(Event{std::max(when, now_), order_++, std::move(action)});
}

bool World::step() {
  if (events_.empty()) return false;
  // The queue only lends its top, and the action is of no more use to it.
  auto action = std::move(const_cast<Event&>(events_.top()).action);
  now_ = events_.top().when;
  events_.pop();
  ++steps_;
  action();
  return true;
}

bool World::chance(double probability) {
  return static_cast<double>(random_.below(1'000'000)) < probability * 1e6;
}

Duration World::between(Duration shortest, Duration longest) {
  const auto span = static_cast<std::uint64_t>((longest - shortest).count());
  return shortest + Duration(static_cast<Duration::rep>(random_.below(span + 1)));
}

void World::mix(std::uint64_t what) {
  for (const std::uint64_t bits :
       {what, static_cast<std::uint64_t>(now_.time_since_epoch().count())}) {
    fingerprint_ = (fingerprint_ ^ bits) * 0x100000001B3u;
  }
}

void World::print(const std::string& text) const {
  const auto ms = std::chrono::duration_cast<milliseconds>(now_.time_since_epoch()).count();
  const std::string fraction = std::to_string(ms % 1000 + 1000).substr(1);
  std::cout << ms / 1000 << '.' << fraction << "  " << text << '\n';
}

void Freezable::freeze(Duration how_long) {
  if (frozen()) return;
  frozen_until_ = world_.now() + how_long;
  world_.at(frozen_until_, [this] { catch_up(); });
}

void Freezable::thaw() {
  frozen_until_ = {};
  catch_up();
}

void Freezable::run(std::function<void()> action) {
  if (frozen() || !missed_.empty()) {
    missed_.push_back(std::move(action));
  } else {
    action();
  }
}

void Freezable::catch_up() {
  if (frozen()) return;
  // By index: an action may add to them.
  for (std::size_t i = 0; i < missed_.size(); ++i) std::exchange(missed_[i], nullptr)();
  missed_.clear();
}

}  // namespace ddp::sim
