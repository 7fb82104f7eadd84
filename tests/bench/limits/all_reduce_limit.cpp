// The least that an all_reduce on one host can cost: N processes meet in shared memory, each copies
// the bytes once. all_reduce_limit N BYTES [BYTES …]
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "tests/bench/all_reduce_loop.h"

namespace {

constexpr int kMaxRanks = 64;

// Lets a sibling thread of the same core get on.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Each rank says on a cache line of its own how often it has come: one line crosses per peer.
struct MeetingPoint {
  struct alignas(64) Flag {
    std::atomic<unsigned> meetings{0};
  };
  std::array<Flag, kMaxRanks> flags;

  void meet(int rank, int count) {
    const unsigned mine = flags[rank].meetings.load(std::memory_order_relaxed) + 1;
    flags[rank].meetings.store(mine, std::memory_order_release);
    for (int peer = 0; peer < count; ++peer) {
      const auto& theirs = flags[peer].meetings;
      // A difference, so that it holds when the count wraps around.
      for (int spins = 0; static_cast<int>(theirs.load(std::memory_order_acquire) - mine) < 0;
           ++spins) {
        relax();
        if (spins > 100) sched_yield();  // the peer may need this very core
      }
    }
  }
};

void run_rank(MeetingPoint& point, int rank, int count, const std::vector<std::size_t>& sizes) {
  std::vector<float> copy;
  for (const std::size_t bytes : sizes)
    copy.resize(std::max(copy.size(), bytes / sizeof(float) + 1));
  ddp::bench::Contender contender{"limit",
                                  [&](float* data, std::size_t elements) {
                                    point.meet(rank, count);
                                    std::memcpy(copy.data(), data, elements * sizeof(float));
                                  },
                                  [&] { point.meet(rank, count); }};
  contender.reduces = false;
  ddp::bench::run_contenders({contender}, sizes, rank, count);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc < 3 ? 0 : std::atoi(argv[1]);
  if (count < 1 || count > kMaxRanks) {
    std::cerr << "usage: all_reduce_limit N BYTES [BYTES ...]\n";
    return 2;
  }
  void* page = mmap(nullptr, sizeof(MeetingPoint), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    std::cerr << "all_reduce_limit: no shared memory: " << std::strerror(errno) << '\n';
    return 1;
  }
  auto* point = new (page) MeetingPoint;
  const auto sizes = ddp::bench::sizes_from(argc, argv, 2);
  for (int rank = 1; rank < count; ++rank) {
    if (fork() == 0) {
      run_rank(*point, rank, count, sizes);
      return 0;
    }
  }
  run_rank(*point, 0, count, sizes);
  int failures = 0;
  for (int status = 0; wait(&status) > 0;) failures += status != 0 ? 1 : 0;
  return failures == 0 ? 0 : 1;
}
