#include "tests/sim/scenario.h"

#include <csignal>

namespace ddp::sim {
namespace {

// Off in about half of the seeds, so that each fault is also seen alone.
double rate(World& world, double most) {
  if (world.chance(0.5)) return 0;
  return most * static_cast<double>(world.below(1000)) / 1000.0;
}

}  // namespace

Scenario draw_scenario(World& world) {
  Scenario scenario;
  const auto mood = world.below(10);
  scenario.mood = mood < 2 ? Mood::calm : mood < 4 ? Mood::gentle : Mood::rough;
  scenario.hosts = 1 + static_cast<int>(world.below(4));
  scenario.limits.max = scenario.hosts;
  scenario.limits.min = scenario.hosts;
  if (world.chance(0.4)) {
    scenario.limits.min = 1 + static_cast<int>(world.below(static_cast<unsigned>(scenario.hosts)));
  }
  if (world.chance(0.1)) scenario.limits.max = scenario.limits.min;  // one or more have no place
  scenario.max_restarts =
      static_cast<std::int32_t>(world.chance(0.2) ? 4 + world.below(8) : world.below(4));
  const Duration delays[] = {Duration{}, milliseconds(300), seconds(5)};
  scenario.restart_delay = delays[world.below(3)];
  scenario.notify = world.chance(0.3);
  const bool slow_start = world.chance(0.3);
  for (int i = 0; i < scenario.hosts; ++i) {
    scenario.workers.push_back(1 + static_cast<std::int32_t>(world.below(3)));
    const Duration latest = slow_start ? Duration(seconds(40)) : Duration(milliseconds(300));
    scenario.comes_after.push_back(world.between(Duration{}, latest));
  }
  scenario.embedded = world.chance(0.5);
  if (scenario.embedded) scenario.comes_after[0] = Duration{};
  scenario.fixed_ranks = scenario.limits.max == scenario.hosts && world.chance(0.4);
  if (world.chance(0.3)) scenario.weather.longest_delay = milliseconds(400);
  scenario.weather.through_json = world.chance(0.05);
  scenario.join_timeout = seconds(20 + static_cast<int>(world.below(60)));
  scenario.shutdown_timeout = seconds(1 + static_cast<int>(world.below(10)));
  scenario.faults_last = seconds(10 + static_cast<int>(world.below(50)));
  scenario.between_faults = seconds(1 + static_cast<int>(world.below(15)));

  scenario.worker_fails = rate(world, 0.3);
  scenario.workers_fail_together = rate(world, 0.5);
  scenario.worker_is_slow = rate(world, 0.5);
  scenario.worker_ignores_term = rate(world, 0.3);
  scenario.survivor_follows = rate(world, 1.0);
  scenario.tells_of_loss = rate(world, 1.0);
  scenario.culprit_lingers = rate(world, 1.0);
  if (scenario.mood == Mood::gentle) {  // time enough to come back within the grace
    scenario.weather.longest_delay = milliseconds(20);
    scenario.between_faults += seconds(2);
  }
  if (scenario.mood != Mood::rough) return scenario;
  scenario.cuts_at_start = rate(world, 0.3);
  scenario.spawn_fails = rate(world, 0.05);
  scenario.store_fails = rate(world, 0.1);
  scenario.interrupts = rate(world, 0.2);
  scenario.crashes = rate(world, 0.3);
  scenario.host_crashes = rate(world, 0.2);
  scenario.comes_back = rate(world, 1.0);
  scenario.misfits = rate(world, 0.2);
  scenario.dies_while_closing = rate(world, 0.5);
  return scenario;
}

Behaviour draw_behaviour(World& world, const Scenario& scenario, bool calmly) {
  Behaviour behaviour;
  behaviour.ignores_term = world.chance(scenario.worker_ignores_term);
  behaviour.lasts = world.between(milliseconds(10), seconds(4));
  if (calmly) return behaviour;
  if (world.chance(scenario.workers_fail_together)) {
    behaviour.lasts = seconds(1) + world.between(Duration{}, 3 * scenario.weather.longest_delay);
    behaviour.exit_code = 1 + static_cast<std::int32_t>(world.below(100));
    behaviour.lingers = world.chance(scenario.culprit_lingers);
    return behaviour;
  }
  if (world.chance(scenario.worker_is_slow)) {
    behaviour.lasts = world.between(seconds(4), seconds(40));
  }
  if (!world.chance(scenario.worker_fails)) return behaviour;
  behaviour.lingers = world.chance(scenario.culprit_lingers);
  if (world.chance(0.5)) {
    behaviour.exit_code = 1 + static_cast<std::int32_t>(world.below(100));
  } else {
    behaviour.signal = world.chance(0.5) ? SIGSEGV : SIGKILL;
  }
  return behaviour;
}

std::string Scenario::text() const {
  constexpr const char* kMoods[] = {"calm", "gentle", "rough"};
  return std::string(kMoods[static_cast<std::size_t>(mood)]) + ", " + std::to_string(hosts) +
         " hosts, " + std::to_string(limits.min) + " to " + std::to_string(limits.max) +
         " nodes, " + std::to_string(max_restarts) + " restarts, " + (notify ? "notify, " : "") +
         (embedded ? "embedded" : "separate") + (fixed_ranks ? ", fixed ranks" : "") +
         (weather.through_json ? ", json" : "");
}

}  // namespace ddp::sim
