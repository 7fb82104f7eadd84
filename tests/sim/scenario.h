// What a seed stands for: the job, the hosts, and how much goes wrong. All rates are drawn, some
// are nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/core/membership.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace ddp::sim {

// How a worker behaves, decided when it starts.
struct Behaviour {
  Duration lasts{};
  std::int32_t exit_code = 0;  // when it ends by itself
  std::int32_t signal = 0;     // instead, if not 0
  bool ignores_term = false;
  bool lingers = false;  // its peers lose it some time before it is dead
};

enum class Mood : std::uint8_t {
  calm,    // only workers fail; the coordinator may pause
  gentle,  // connections break, but both ends hear of it and can connect again at once
  rough,   // everything
};

struct Scenario {
  Mood mood = Mood::calm;
  int hosts = 1;
  rendezvous::NodeLimits limits;
  std::int32_t max_restarts = 0;
  Duration restart_delay{};
  bool notify = false;                // workers live on where others are lost
  std::vector<std::int32_t> workers;  // by host
  std::vector<Duration> comes_after;  // by host: when its agent is started
  bool fixed_ranks = false;
  bool embedded = false;
  Network::Weather weather;
  Duration join_timeout{};
  Duration shutdown_timeout{};
  Duration faults_last{};
  Duration between_faults{};

  double worker_fails = 0;           // per worker and round
  double workers_fail_together = 0;  // nearly at once, as when a network breaks
  double worker_is_slow = 0;
  double worker_ignores_term = 0;
  double survivor_follows = 0;  // a worker dies of the death of another
  double tells_of_loss = 0;     // and says so
  double culprit_lingers = 0;   // of those that fail
  double cuts_at_start = 0;     // a connection breaks with the order to run on its way
  double spawn_fails = 0;
  double store_fails = 0;
  double interrupts = 0;  // each of these: of a fault that happens
  double crashes = 0;
  double host_crashes = 0;
  double comes_back = 0;  // of those that crashed
  double misfits = 0;
  double dies_while_closing = 0;  // the agent beside an embedded coordinator

  [[nodiscard]] std::string text() const;
};

[[nodiscard]] Scenario draw_scenario(World& world);
// `calmly`: the time of faults is over.
[[nodiscard]] Behaviour draw_behaviour(World& world, const Scenario& scenario, bool calmly);

}  // namespace ddp::sim
