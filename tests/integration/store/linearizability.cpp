// The search of Wing and Gong, with Lowe's memory of what has been tried: walk along the calls in
// the order of their times, take each that fits as the next, and go back where a return is met
// whose call has not been taken. Calls that never returned are tried when no other fits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/integration/store/history.h"

namespace ddp::store_test {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::size_t kTooMany = 20'000'000;

class Search {
 public:
  explicit Search(const std::vector<Operation>& history) : history_(history) {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < history.size(); ++i) marks_.push_back(random());
    link_events();
  }

  bool succeeds() {
    std::size_t at = next(kHead);
    while (left_ > 0) {
      if (at == kNone) {
        const std::size_t call = go_back();
        if (call == kNone) return false;
        at = next(call);
        continue;
      }
      const Operation& operation = history_[events_[at].operation];
      NameState after = state_;
      const bool fits = apply(operation, after);
      const bool looks = only_looks(operation);
      if (fits && (looks || is_new(events_[at].operation, after))) {
        take(at, std::move(after), looks);
        at = next(kHead);
      } else {
        at = next(at);
      }
    }
    return true;
  }

 private:
  struct Event {
    Time time = 0;
    bool is_call = true;
    std::size_t operation = 0;
    std::size_t partner = kNone;  // its call or return; none where it never returned
    std::size_t before = kNone;
    std::size_t after = kNone;
  };
  struct Step {
    std::size_t call;
    NameState before;
    bool looks;
  };
  // Two lists behind two heads: calls that returned, with their returns, and calls that did not.
  static constexpr std::size_t kHead = 0;
  static constexpr std::size_t kHeadOfOpen = 1;

  void link_events() {
    events_.resize(2);
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const bool returns = history_[i].returned != kNever;
      if (!returns && only_looks(history_[i])) continue;  // nobody has seen what it saw
      events_.push_back({history_[i].invoked, true, i});
      if (!returns) continue;
      events_.push_back({history_[i].returned, false, i});
      ++left_;
    }
    // Of the same time the call comes first: that only allows more.
    std::stable_sort(events_.begin() + 2, events_.end(), [](const Event& a, const Event& b) {
      return a.time != b.time ? a.time < b.time : a.is_call && !b.is_call;
    });
    std::vector<std::size_t> calls(history_.size());
    std::size_t last = kHead;
    std::size_t last_open = kHeadOfOpen;
    for (std::size_t i = 2; i < events_.size(); ++i) {
      Event& event = events_[i];
      std::size_t& tail = history_[event.operation].returned == kNever ? last_open : last;
      events_[tail].after = i;
      event.before = std::exchange(tail, i);
      if (event.is_call) {
        calls[event.operation] = i;
      } else {
        event.partner = calls[event.operation];
        events_[event.partner].partner = i;
      }
    }
  }

  // The call to be tried behind that one; none: back.
  [[nodiscard]] std::size_t next(std::size_t at) const {
    std::size_t found = events_[at].after;
    const bool was_open = at != kHead && events_[at].partner == kNone;
    if (!was_open) {
      if (found != kNone && events_[found].is_call) return found;
      found = events_[kHeadOfOpen].after;
    }
    // It was invoked before anything that has yet to be taken returned.
    if (found == kNone || left_ == 0) return kNone;
    std::size_t first_return = events_[kHead].after;
    while (events_[first_return].is_call) first_return = events_[first_return].after;
    return events_[found].time <= events_[first_return].time ? found : kNone;
  }

  // Whether this set of operations, leaving this state, has not been tried yet.
  bool is_new(std::size_t operation, const NameState& after) {
    if (seen_.size() > kTooMany) throw std::runtime_error("a history too hard to decide");
    return seen_.insert((taken_ ^ marks_[operation]) + after.hash()).second;
  }

  void take(std::size_t call, NameState after, bool looks) {
    steps_.push_back({call, std::move(state_), looks});
    state_ = std::move(after);
    taken_ ^= marks_[events_[call].operation];
    unlink(call);
    if (events_[call].partner == kNone) return;
    unlink(events_[call].partner);
    --left_;
  }

  // Gives back the last step that may have been wrong, and says which it was. One that only looked
  // was right where it first fitted.
  std::size_t go_back() {
    while (!steps_.empty()) {
      const Step step = std::move(steps_.back());
      steps_.pop_back();
      state_ = step.before;
      taken_ ^= marks_[events_[step.call].operation];
      if (const std::size_t end = events_[step.call].partner; end != kNone) {
        relink(end);
        ++left_;
      }
      relink(step.call);
      if (!step.looks) return step.call;
    }
    return kNone;
  }
  void unlink(std::size_t at) {
    events_[events_[at].before].after = events_[at].after;
    if (events_[at].after != kNone) events_[events_[at].after].before = events_[at].before;
  }
  void relink(std::size_t at) {
    events_[events_[at].before].after = at;
    if (events_[at].after != kNone) events_[events_[at].after].before = at;
  }

  const std::vector<Operation>& history_;
  std::vector<std::uint64_t> marks_;  // one an operation: a set of them is their exclusive or
  std::vector<Event> events_;
  std::size_t left_ = 0;  // operations that returned and have not been taken
  NameState state_;
  std::uint64_t taken_ = 0;
  std::vector<Step> steps_;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace

bool is_linearizable(const std::vector<Operation>& history) {
  return Search(history).succeeds();
}

}  // namespace ddp::store_test
