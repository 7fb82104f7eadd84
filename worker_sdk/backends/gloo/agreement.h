// How ranks find out, before any data moves, that they are about to call different things.
#pragma once

#include <cstdint>
#include <type_traits>

#include "worker_sdk/core/call.h"

namespace ddp::backends {

// The view of a set of ranks: its lowest rank, and the lowest that calls something else (-1: none
// does). Travels as raw bytes between ranks of one build; no padding.
struct Agreement {
  sdk::Fingerprint lowest;
  sdk::Fingerprint odd;
  int32_t lowest_rank = -1;
  int32_t odd_rank = -1;

  static Agreement of(const sdk::Fingerprint& fingerprint, int rank) {
    return Agreement{fingerprint, sdk::Fingerprint{}, rank, -1};
  }
  [[nodiscard]] bool agreed() const { return odd_rank < 0; }
};
static_assert(std::is_trivially_copyable_v<Agreement>);
static_assert(sizeof(Agreement) == 2 * sizeof(sdk::Fingerprint) + 2 * sizeof(int32_t));

// Idempotent, commutative and associative: ranks may hear of each other twice and in any order.
[[nodiscard]] Agreement merge(const Agreement& a, const Agreement& b);

}  // namespace ddp::backends
