// The shared-memory page by which an agent tells its workers' SDK that somebody has died
// (PROTOCOL.md, "Control page").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddp::rendezvous {

inline constexpr std::uint64_t kControlPageMagic =
    0x3130'4547'4150'4444;  // "DDPAGE01", little-endian
inline constexpr std::uint32_t kControlPageVersion = 1;
inline constexpr std::size_t kControlPageSize = 8192;
inline constexpr std::uint32_t kControlPageMaxWorkers = 1024;

enum class PoisonState : std::uint32_t {
  alive = 0,     // nobody has died
  writing = 1,   // the writer has claimed the page; the fields below are not valid yet
  poisoned = 2,  // the fields below are valid and final
};

// Lives at offset 0 of the memfd that DDP_SHM_FD names; one memfd a round. Written by the agent,
// or, without our agent, by whichever local rank first notices. The first death wins: `poison` goes
// alive → writing → poisoned once.
struct ControlPage {
  // Fixed before any worker starts.
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;  // kControlPageSize
  std::uint64_t round_number;
  std::uint64_t round_nonce;
  std::uint32_t world_size;
  std::uint32_t local_world_size;
  std::uint32_t first_rank;  // of this node
  std::uint32_t reserved0;

  // Who died, and why. Valid when poison == poisoned (read it with acquire).
  alignas(64) std::atomic<std::uint32_t> poison;
  std::int32_t dead_rank;  // -1: a whole node
  std::int32_t dead_pid;
  std::int32_t exit_code;  // -1: killed by dead_signal
  std::int32_t dead_signal;
  char host[64];     // NUL-terminated
  char reason[512];  // NUL-terminated, one sentence

  // Where a waiting rank sleeps: FUTEX_WAIT on doorbell[its local rank]. A peer rings by adding 1
  // and FUTEX_WAKE; whoever poisons the page rings all. So one page is enough to wake everybody,
  // whichever group they wait in.
  alignas(64) std::atomic<std::uint32_t> doorbell[kControlPageMaxWorkers];
};

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 &&
              std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(offsetof(ControlPage, poison) == 64);
static_assert(offsetof(ControlPage, host) == 84);
static_assert(offsetof(ControlPage, reason) == 148);
static_assert(offsetof(ControlPage, doorbell) == 704);
static_assert(sizeof(ControlPage) <= kControlPageSize);

}  // namespace ddp::rendezvous
