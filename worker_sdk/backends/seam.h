// What the plug-ins share at the C seam: failures as values, and a fence that lets no exception
// through.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include <ddp/backend.h>
#include <ddp/types.hpp>

#include "worker_sdk/io/deadline.h"

namespace ddp::backends {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Thrown inside a plug-in, turned into a status and a message by `fenced`.
class Failure : public std::exception {
 public:
  Failure(ddp_status status, std::string message, int rank = -1)
      : status_(status), rank_(rank), message_(std::move(message)) {}

  [[nodiscard]] ddp_status status() const { return status_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  ddp_status status_;
  int rank_;
  std::string message_;
};

inline ddp_status report(ddp_error_v1* error, ddp_status status, int rank, const char* message) {
  if (error != nullptr) {
    error->rank = rank;
    std::snprintf(error->message, sizeof error->message, "%s", message);
  }
  return status;
}

// Runs a body that throws on failure. A body that returns normally means DDP_OK.
template <class Body>
ddp_status fenced(ddp_error_v1* error, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return DDP_OK;
  } catch (const Failure& failure) {
    return report(error, failure.status(), failure.rank(), failure.what());
  } catch (const std::exception& other) {
    return report(error, DDP_UNAVAILABLE, -1, other.what());
  } catch (...) {
    return report(error, DDP_UNAVAILABLE, -1, "the backend failed with an unknown exception");
  }
}

// The time by which one call must have ended.
class Deadline {
 public:
  explicit Deadline(Milliseconds timeout) : timeout_(timeout), end_(Clock::now() + timeout) {}

  // Never zero or negative: libraries read those as "no timeout".
  [[nodiscard]] Milliseconds remaining() const {
    const auto left = std::chrono::duration_cast<Milliseconds>(end_ - Clock::now());
    return left.count() < 1 ? Milliseconds(1) : left;
  }
  [[nodiscard]] bool passed() const { return Clock::now() >= end_; }
  [[nodiscard]] Milliseconds timeout() const { return timeout_; }

 private:
  Milliseconds timeout_;
  Clock::time_point end_;
};

// The group's timeout when the call brings none. Bounded so that a deadline can be computed from
// it.
inline Milliseconds effective_timeout(int64_t of_call_ms, int64_t of_group_ms) {
  constexpr int64_t kLongestMs = int64_t{1000} * 60 * 60 * 24 * 365;
  const int64_t chosen = of_call_ms < 0 ? of_group_ms : of_call_ms;
  return Milliseconds(chosen > kLongestMs ? kLongestMs : chosen);
}

using sdk::in_seconds;

// The seam's numbers are the SDK's. Throws for a number that this plug-in does not know.
inline DataType type_of(const ddp_call_v1& call) {
  if (call.dtype < DDP_UINT8 || call.dtype > DDP_INT16) {
    throw Failure(DDP_INVALID_USE, "unknown element type " + std::to_string(int{call.dtype}));
  }
  return static_cast<DataType>(call.dtype);
}

// premul_sum is a sum whose inputs are scaled first; each rank brings its own factor.
inline ReduceOp op_of(const ddp_call_v1& call) {
  if (call.op < DDP_SUM || call.op > DDP_PREMUL_SUM) {
    throw Failure(DDP_INVALID_USE, "unknown reduction " + std::to_string(int{call.op}));
  }
  return call.op == DDP_PREMUL_SUM ? ReduceOp::sum : static_cast<ReduceOp>(call.op);
}
static_assert(int{DDP_BFLOAT16} == static_cast<int>(DataType::bfloat16));
static_assert(int{DDP_INT16} == static_cast<int>(DataType::int16));
static_assert(int{DDP_BXOR} == static_cast<int>(ReduceOp::bxor));

// Which struct sizes a caller of this version of the seam may pass.
inline void require_size(size_t size, size_t needed, const char* what) {
  if (size < needed) {
    throw Failure(DDP_INVALID_USE, std::string(what) + " is smaller than this plug-in's version 1");
  }
}

inline void check_options(const ddp_group_options_v1* options) {
  if (options == nullptr) throw Failure(DDP_INVALID_USE, "no options given");
  require_size(options->size, sizeof(ddp_group_options_v1), "ddp_group_options_v1");
  if (options->world_size < 1 || options->rank < 0 || options->rank >= options->world_size) {
    throw Failure(DDP_INVALID_USE, "rank " + std::to_string(options->rank) +
                                       " does not fit a world of " +
                                       std::to_string(options->world_size));
  }
  if (options->store == nullptr && options->world_size > 1) {
    throw Failure(DDP_INVALID_USE, "a group of several ranks needs a store");
  }
}

inline void check_call(const ddp_call_v1& call, int world_size) {
  require_size(call.size, sizeof(ddp_call_v1), "ddp_call_v1");
  if (call.root < 0 || call.root >= world_size) {
    throw Failure(DDP_INVALID_USE, "root " + std::to_string(call.root) +
                                       " is no rank of a world of " + std::to_string(world_size));
  }
}

// For operations that move data.
inline void check_buffers(const ddp_call_v1& call) {
  if (call.count > 0 && (call.input == nullptr || call.output == nullptr)) {
    throw Failure(DDP_INVALID_USE, "a null pointer with a count of " + std::to_string(call.count));
  }
}

}  // namespace ddp::backends
