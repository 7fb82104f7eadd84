// What a call gives back that the outside can refuse: the value, or an Error that a person can
// read.
#pragma once

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ddp::rendezvous {

struct Error {
  std::string message;  // One sentence: what happened, why as far as known, what to do.
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

[[noreturn]] inline void assertion_failed(const char* expression, const char* file, int line) {
  std::cerr << file << ':' << line << ": broken invariant: " << expression << '\n';
  std::abort();
}

}  // namespace ddp::rendezvous

// On in release too: a machine that is wrong stops rather than misleads.
#define DDP_ASSERT(expression) \
  ((expression) ? (void)0 : ::ddp::rendezvous::assertion_failed(#expression, __FILE__, __LINE__))
