// One seed: a job from its first agent to the last one's exit, with faults for a while.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/network.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_agent.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/world.h"

namespace ddp::sim {

struct RunResult {
  std::uint64_t fingerprint = 0;
  std::uint64_t steps = 0;
  Duration virtual_time{};
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool tracing);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  // Throws Violation.
  RunResult run();

 private:
  void start_agent(int host, bool misfit);
  void schedule_fault();
  void cause_fault();
  void all_lose_a_peer();
  void cause_crash(SimAgent& agent, bool with_host);
  void break_connections(int host);
  void maybe_cut_at_start(int host, std::uint64_t round);
  void maybe_die_while_closing();
  void end_faults();
  void check_end() const;
  [[nodiscard]] SimAgent* current(int host) const;
  [[nodiscard]] bool all_gone() const;
  // In which everything has come to an end once nothing goes wrong any more.
  [[nodiscard]] Duration bound() const;

  World world_;
  Scenario scenario_;
  Network network_;
  Checkers checkers_;
  SimCoordinator coordinator_;
  Surroundings around_;
  std::vector<std::shared_ptr<SimAgent>> agents_;  // every life of every agent
  std::map<int, std::uint64_t> started_;           // the newest round ordered, by host
  Instant faults_end_;
  int expected_ = 0;  // agents that will still be started
};

}  // namespace ddp::sim
