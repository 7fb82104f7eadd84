// Where everything lies in a group's shared memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "worker_sdk/core/call.h"

namespace ddp::sdk::shm {

inline constexpr std::uint64_t kMagic = 0x3130'4d48'5350'4444;  // "DDPSHM01", little-endian
inline constexpr std::uint32_t kVersion = 1;

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t ranks;
  std::uint64_t chunk;  // bytes
  std::uint64_t size;   // bytes, of everything
  char token[40];       // NUL-terminated
  // How many ranks sleep, or died asleep: while it is 0 nobody needs a bell.
  alignas(128) std::atomic<std::uint32_t> sleepers;
};

enum class RankState : std::uint32_t {
  absent = 0,
  active = 1,
  left = 2,    // destroyed its group
  broken = 3,  // gave up after an error, see `cause`
};

enum class Cause : std::uint32_t { none = 0, timeout = 1, peer_lost = 2, mismatch = 3 };

// One rank's part; written by that rank alone. Parts that others spin on have cache lines (in
// pairs, as they are fetched) of their own.
struct RankSlot {
  // Round numbers start at 1 and never wrap. `posted` = the newest round for which this rank's
  // fingerprint and input lie ready. Two of each, used in turn.
  alignas(128) std::atomic<std::uint64_t> posted;
  Fingerprint prints[2];
  // The newest round of which this rank's slice of the result lies ready.
  alignas(128) std::atomic<std::uint64_t> reduced;
  alignas(128) std::atomic<std::uint32_t> sleeping;
  std::atomic<std::uint32_t> state;  // RankState
  std::uint32_t cause;               // valid once state is broken
  std::int32_t culprit;              // likewise: the rank that is to blame, -1: unknown
};

static_assert(sizeof(RankSlot) == 384);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Header, slots, then per rank two chunks of input, then two chunks of output. Pages that nobody
// touches cost nothing.
class Layout {
 public:
  Layout(int ranks, std::size_t chunk) : ranks_(static_cast<std::size_t>(ranks)), chunk_(chunk) {}

  [[nodiscard]] std::size_t slot(int rank) const {
    return kSlots + static_cast<std::size_t>(rank) * sizeof(RankSlot);
  }
  [[nodiscard]] std::size_t input(int rank, std::uint64_t round) const {
    return data() + (2 * static_cast<std::size_t>(rank) + (round & 1)) * chunk_;
  }
  [[nodiscard]] std::size_t output(std::uint64_t round) const {
    return data() + (2 * ranks_ + (round & 1)) * chunk_;
  }
  [[nodiscard]] std::size_t size() const { return data() + (2 * ranks_ + 2) * chunk_; }
  [[nodiscard]] std::size_t chunk() const { return chunk_; }

 private:
  static constexpr std::size_t kSlots = 4096;
  static_assert(sizeof(Header) <= kSlots);

  [[nodiscard]] std::size_t data() const {
    return (kSlots + ranks_ * sizeof(RankSlot) + 4095) & ~std::size_t{4095};
  }

  std::size_t ranks_;
  std::size_t chunk_;
};

// Which part of `count` elements a rank reduces: whole cache lines, in rank order.
struct Slice {
  std::size_t begin = 0;
  std::size_t end = 0;
};
[[nodiscard]] inline Slice slice_of(std::size_t count, int rank, int ranks, std::size_t size) {
  const std::size_t line = 64 / size;
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t each = ((count + parts - 1) / parts + line - 1) / line * line;
  const std::size_t begin = std::min(count, each * static_cast<std::size_t>(rank));
  return {begin, std::min(count, begin + each)};
}

}  // namespace ddp::sdk::shm
