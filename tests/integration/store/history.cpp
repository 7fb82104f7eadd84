#include "tests/integration/store/history.h"

#include <charconv>
#include <cstddef>
#include <functional>
#include <string_view>

namespace ddp::store_test {
namespace {

constexpr std::string_view kNames[] = {
    "SET",    "GET",   "ADD",    "COMPARE_SET",    "DELETE",
    "APPEND", "CHECK", "WAIT",   "WAIT cancelled", "PUSH",
    "POP",    "LEN",   "ARRIVE", "PASS",           "PASS cancelled"};

// Written from the description of the protocol, not from the store: decimal text with white space
// and a sign in front and anything behind.
std::optional<std::int64_t> number_in(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size() && std::string_view(" \t\n\v\f\r").find(text[at]) != std::string::npos) {
    ++at;
  }
  const bool negative = at < text.size() && text[at] == '-';
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), size);
  const std::uint64_t limit = std::uint64_t{1} << 63;
  if (error != std::errc{} || size > limit || (!negative && size == limit)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - size : size);
}

// Adds to the number kept there; nothing, and nothing changes, where there is none.
std::optional<std::int64_t> add(NameState& state, std::int64_t difference) {
  const auto before = state.value ? number_in(*state.value) : 0;
  if (!before) return std::nullopt;
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(*before) +
                                             static_cast<std::uint64_t>(difference));
  state.value = std::to_string(sum);
  return sum;
}

bool reached(const NameState& state, std::int64_t enough) {
  const auto number = state.value ? number_in(*state.value) : std::nullopt;
  return number && *number >= enough;
}

bool pop(const Operation& operation, NameState& state) {
  const auto length = static_cast<std::int64_t>(state.queue.size());
  std::string value;
  if (!state.queue.empty()) {
    value = state.queue.front();
    state.queue.pop_front();
  }
  return operation.outcome == Outcome::unknown ||
         (operation.count == length && operation.value == value);
}

std::string compare_set(const Operation& operation, NameState& state) {
  if (!state.value && !operation.argument.empty()) return operation.argument;
  if (state.value.value_or("") == operation.argument) state.value = operation.desired;
  return *state.value;
}

}  // namespace

std::string text_of(const Operation& operation) {
  std::string text{kNames[static_cast<std::size_t>(operation.kind)]};
  if (!operation.argument.empty()) text += " \"" + operation.argument + "\"";
  if (!operation.desired.empty()) text += " \"" + operation.desired + "\"";
  if (operation.number != 0) text += " " + std::to_string(operation.number);
  text += " at " + std::to_string(operation.invoked);
  if (operation.outcome == Outcome::unknown) return text + ", left";
  if (operation.outcome == Outcome::closed) text += ", closed";
  return text + " until " + std::to_string(operation.returned) + ": \"" + operation.value + "\" " +
         std::to_string(operation.count);
}

std::uint64_t NameState::hash() const {
  const std::hash<std::string> hash;
  std::uint64_t sum = value ? hash(*value) : 1;
  for (const std::string& item : queue) sum = sum * 0x9E37'79B9'7F4A'7C15 + hash(item) + 1;
  return sum;
}

bool only_looks(const Operation& operation) {
  if (operation.outcome == Outcome::closed) return true;
  const bool told = operation.outcome == Outcome::answered;
  switch (operation.kind) {
    case Kind::set:
    case Kind::add:
    case Kind::append:
    case Kind::push:
    case Kind::arrive:
      return false;
    case Kind::remove:
    case Kind::pop:
      return told && operation.count == 0;
    case Kind::compare_set:
      return told && operation.value != operation.desired;
    default:
      return true;
  }
}

bool apply(const Operation& operation, NameState& state) {
  const bool told = operation.outcome == Outcome::answered;
  if (operation.outcome == Outcome::closed) {
    // An answer too: only these are refused, and they change nothing.
    if (operation.kind == Kind::get) return operation.legacy && !state.value;
    if (operation.kind == Kind::add || operation.kind == Kind::arrive) {
      return state.value && !number_in(*state.value);
    }
    return false;
  }
  switch (operation.kind) {
    case Kind::set:
      state.value = operation.argument;
      return true;
    case Kind::get:
      if (operation.legacy && !state.value) return !told;
      return !told || operation.value == state.value.value_or("");
    case Kind::add: {
      const auto sum = add(state, operation.number);
      return told ? sum == operation.count : true;
    }
    case Kind::compare_set: {
      const std::string there = compare_set(operation, state);
      return !told || operation.value == there;
    }
    case Kind::remove: {
      const bool existed = state.value.has_value();
      state.value.reset();
      return !told || operation.count == (existed ? 1 : 0);
    }
    case Kind::append:
      state.value = state.value.value_or("") + operation.argument;
      return true;
    case Kind::check:
      return !told || operation.count == (state.exists() ? 0 : 1);
    case Kind::wait:
      return state.exists();
    case Kind::wait_cancelled:
      return !state.value;  // a push may have woken another
    case Kind::push:
      state.queue.push_back(operation.argument);
      return true;
    case Kind::pop:
      return pop(operation, state);
    case Kind::length:
      return !told || operation.count == static_cast<std::int64_t>(state.queue.size());
    case Kind::arrive: {
      const auto sum = add(state, 1);
      return !told || sum.has_value();
    }
    case Kind::pass:
      return reached(state, operation.number);
    case Kind::not_passed:
      return !reached(state, operation.number);
  }
  return false;
}

}  // namespace ddp::store_test
