// The loop that every all_reduce contender runs, so that all are timed alike: refill, meet, time
// one call, check.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace ddp::bench {

struct Contender {
  std::string name;
  std::function<void(float* data, std::size_t count)> all_reduce;  // sums over the ranks, in place
  std::function<void()> barrier;
  bool reduces = true;  // a limit only moves bytes: its result is not looked at
};

// A short call is timed in chains: alone it would measure who left the barrier first.
inline int chain_for(std::size_t bytes) {
  return bytes <= 4096 ? 20 : 1;
}

// What every element is after `chain` sums of what the ranks put in.
inline float expected_sum(int world_size, int chain) {
  auto expected = static_cast<float>(world_size * (world_size + 1)) / 2.0F;
  for (int i = 1; i < chain; ++i) expected *= static_cast<float>(world_size);
  return expected;
}

// A refilled buffer before each chain is what a training step brings; a hot one would flatter.
inline double median_microseconds(const Contender& contender, std::size_t count, int rank,
                                  int world_size, int iterations) {
  using Clock = std::chrono::steady_clock;
  const int chain = chain_for(count * sizeof(float));
  const float expected = expected_sum(world_size, chain);
  std::vector<float> data(count);
  std::vector<double> times;
  for (int i = 0; i < iterations; ++i) {
    std::fill(data.begin(), data.end(), static_cast<float>(rank + 1));
    contender.barrier();
    const auto begin = Clock::now();
    for (int link = 0; link < chain; ++link) contender.all_reduce(data.data(), count);
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    times.push_back(took.count() / chain);
    if (contender.reduces &&
        !std::all_of(data.begin(), data.end(), [&](float x) { return x == expected; })) {
      std::cerr << contender.name << ": wrong sum of " << count << " floats on rank " << rank
                << '\n';
      std::exit(1);
    }
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Enough calls for a steady median, but no more than about a second of copying.
inline int iterations_for(std::size_t bytes) {
  return bytes <= 65536 ? 501 : bytes <= 4194304 ? 101 : 21;
}

// Size by size and contender by contender, so that all see the same state of the machine. Rank 0
// prints a line `name bytes microseconds` for each.
inline void run_contenders(const std::vector<Contender>& contenders,
                           const std::vector<std::size_t>& sizes, int rank, int world_size) {
  for (const std::size_t bytes : sizes) {
    for (const Contender& contender : contenders) {
      const std::size_t count = std::max<std::size_t>(bytes / sizeof(float), 1);
      (void)median_microseconds(contender, count, rank, world_size, 3);  // first touch of buffers
      const double median =
          median_microseconds(contender, count, rank, world_size, iterations_for(bytes));
      if (rank == 0) std::cout << contender.name << ' ' << bytes << ' ' << median << std::endl;
    }
  }
}

// The sizes in bytes that the command line names from argument `first` on.
inline std::vector<std::size_t> sizes_from(int argc, char** argv, int first) {
  std::vector<std::size_t> sizes;
  for (int i = first; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  return sizes;
}

}  // namespace ddp::bench
