// What clients asked of one name of a store and what they were told, with the times of both, and
// what the store should make of each request.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ddp::store_test {

using Time = std::int64_t;  // nanoseconds
inline constexpr Time kNever = std::numeric_limits<Time>::max();

enum class Kind : std::uint8_t {
  set,
  get,
  add,
  compare_set,
  remove,
  append,
  check,
  wait,            // that ended
  wait_cancelled,  // that was still pending when it was cancelled
  push,
  pop,
  length,
  arrive,      // the first half of a BARRIER
  pass,        // its end
  not_passed,  // it was still pending when it was cancelled
};

enum class Outcome : std::uint8_t {
  answered,
  closed,   // the store closed the connection instead
  unknown,  // the client left before the answer: it happened, will happen, or never does
};

struct Operation {
  Kind kind = Kind::get;
  Outcome outcome = Outcome::unknown;
  Time invoked = 0;
  Time returned = kNever;
  std::string argument{};  // SET, APPEND, PUSH; COMPARE_SET: what is expected
  std::string desired{};
  std::int64_t number = 0;  // ADD; BARRIER: how many must come
  bool legacy = false;      // in dialect A or B
  // The answer, as far as the kind has one.
  std::string value{};
  std::int64_t count = 0;
};

std::string text_of(const Operation& operation);

// One name: a key and a queue, as CHECK and WAIT see them.
struct NameState {
  std::optional<std::string> value;
  std::deque<std::string> queue;

  [[nodiscard]] bool exists() const { return value.has_value() || !queue.empty(); }
  [[nodiscard]] std::uint64_t hash() const;
};

// Whether the operation, given its outcome, can't have changed anything.
[[nodiscard]] bool only_looks(const Operation& operation);

// Carries `operation` out. False: the store can't have answered so in this state.
[[nodiscard]] bool apply(const Operation& operation, NameState& state);

// Whether there is an order of these operations, each somewhere between its invocation and its
// return, in which every answer is right. Those whose outcome is unknown may be left out.
[[nodiscard]] bool is_linearizable(const std::vector<Operation>& history);

}  // namespace ddp::store_test
