// ddp_sim: runs seeds and says which one breaks a promise.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "tests/sim/simulation.h"

namespace {

using ddp::sim::RunResult;
using ddp::sim::Simulation;

struct Wanted {
  std::uint64_t first = 1;
  std::uint64_t last = 1000;
  bool tracing = false;
  bool valid = true;
};

Wanted read_arguments(const std::vector<std::string>& arguments) {
  Wanted wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--trace") {
      wanted.tracing = true;
    } else if (word == "--seed" && i + 1 < arguments.size()) {
      wanted.first = wanted.last = std::stoull(arguments[++i]);
    } else if (word == "--seeds" && i + 1 < arguments.size()) {
      const std::string& range = arguments[++i];
      const auto dash = range.find('-');
      wanted.valid = wanted.valid && dash != std::string::npos;
      if (!wanted.valid) break;
      wanted.first = std::stoull(range.substr(0, dash));
      wanted.last = std::stoull(range.substr(dash + 1));
    } else {
      wanted.valid = false;
    }
  }
  return wanted;
}

// Two runs of one seed must go the same way, or a failing seed could not be replayed.
constexpr std::uint64_t kRepeatEach = 50;

RunResult run_seed(std::uint64_t seed, bool tracing) {
  const RunResult result = Simulation(seed, tracing).run();
  if (seed % kRepeatEach == 0 && !tracing) {
    const RunResult again = Simulation(seed, false).run();
    if (again.fingerprint != result.fingerprint || again.steps != result.steps) {
      throw ddp::sim::Violation("two runs of this seed went different ways");
    }
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const Wanted wanted = read_arguments({argv + 1, argv + argc});
  if (!wanted.valid) {
    std::cerr << "usage: " << argv[0] << " [--seed N | --seeds A-B] [--trace]\n";
    return 2;
  }
  std::uint64_t steps = 0;
  ddp::sim::Duration virtual_time{};
  for (std::uint64_t seed = wanted.first; seed <= wanted.last; ++seed) {
    try {
      const RunResult result = run_seed(seed, wanted.tracing);
      steps += result.steps;
      virtual_time += result.virtual_time;
    } catch (const std::exception& broken) {
      std::cout << "seed " << seed << ": " << broken.what() << "\nreplay: " << argv[0] << " --seed "
                << seed << " --trace\n";
      return 1;
    }
  }
  const auto hours = std::chrono::duration_cast<std::chrono::hours>(virtual_time).count();
  std::cout << wanted.last - wanted.first + 1 << " seeds, " << steps << " steps, " << hours
            << " simulated hours: every promise held\n";
  return 0;
}
