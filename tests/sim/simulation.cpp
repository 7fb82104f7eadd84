#include "tests/sim/simulation.h"

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace ddp::sim {
namespace {

constexpr std::uint64_t kStepBudget = 400'000;

rendezvous::CoordinatorSetup setup_of(const Scenario& scenario, World& world) {
  rendezvous::CoordinatorSetup setup;
  setup.embedded = scenario.embedded;
  setup.seed = world.below(1'000'000'000);
  setup.times.join = scenario.join_timeout;
  return setup;
}

}  // namespace

Simulation::Simulation(std::uint64_t seed, bool tracing)
    : world_(seed, tracing),
      scenario_(draw_scenario(world_)),
      network_(world_, scenario_.hosts + 1, scenario_.weather),
      checkers_(world_, scenario_),
      coordinator_(world_, network_, checkers_, setup_of(scenario_, world_)),
      around_{world_, scenario_, network_, checkers_, coordinator_},
      faults_end_(Instant{} + scenario_.faults_last) {
  scenario_.workers.push_back(1);  // of the host that misfits come from
  around_.all_lose_a_peer = [this] { all_lose_a_peer(); };
}

Simulation::~Simulation() {
  for (const auto& agent : agents_) agent->let_go();
}

RunResult Simulation::run() {
  world_.record(20, [&] { return scenario_.text(); });
  for (int host = 0; host < scenario_.hosts; ++host) {
    ++expected_;
    world_.after(scenario_.comes_after[static_cast<std::size_t>(host)],
                 [this, host] { start_agent(host, false); });
  }
  coordinator_.on_run([this](int host, std::uint64_t round) { maybe_cut_at_start(host, round); });
  coordinator_.on_verdict([this] { maybe_die_while_closing(); });
  schedule_fault();
  world_.at(faults_end_, [this] { end_faults(); });

  const Instant latest = faults_end_ + bound();
  while (!(all_gone() && expected_ == 0 && world_.now() > faults_end_) && world_.step()) {
    if (world_.steps() > kStepBudget) throw Violation("the step budget is used up: a busy loop");
    if (world_.now() > latest) check_end();
  }
  check_end();
  return {world_.fingerprint(), world_.steps(), world_.now().time_since_epoch()};
}

Duration Simulation::bound() const {
  const Duration longest_worker = seconds(45);
  const Duration last_call = seconds(30);
  const Duration coordinator_timeout = seconds(60);
  const Duration closing = seconds(60);
  const Duration slack = seconds(60);
  // A job may be restarted as often as its budget says, and re-formed after the last loss.
  return longest_worker + last_call + scenario_.join_timeout + closing + coordinator_timeout +
         (scenario_.max_restarts + 2) * (scenario_.shutdown_timeout + seconds(10)) + slack;
}

void Simulation::check_end() const {
  if (!all_gone()) {
    std::string who;
    for (const auto& agent : agents_) {
      if (!agent->gone()) who += " host" + std::to_string(agent->place().host);
    }
    throw Violation("the job does not come to an end after all faults have ended; still there:" +
                    who);
  }
}

void Simulation::start_agent(int host, bool misfit) {
  --expected_;
  char id[33];
  std::snprintf(id, sizeof id, "%04zx%028d", agents_.size() + 0xA0, host);
  AgentPlace place{host, NodeId{id}, scenario_.embedded && host == 0, misfit};
  if (place.local && coordinator_.dead()) return;  // an embedded one comes back as another job
  agents_.push_back(std::make_shared<SimAgent>(around_, std::move(place)));
  agents_.back()->start();
}

SimAgent* Simulation::current(int host) const {
  const auto found = std::find_if(agents_.rbegin(), agents_.rend(), [host](const auto& agent) {
    return agent->place().host == host && !agent->gone();
  });
  return found == agents_.rend() ? nullptr : found->get();
}

bool Simulation::all_gone() const {
  return std::all_of(agents_.begin(), agents_.end(),
                     [](const auto& agent) { return agent->gone() && !agent->has_workers(); });
}

// ---- faults ----------------------------------------------------------------------------------

void Simulation::schedule_fault() {
  const Duration shortest = scenario_.mood == Mood::gentle ? milliseconds(1500) : milliseconds(50);
  const Duration pause = world_.between(shortest, 2 * scenario_.between_faults);
  if (world_.now() + pause >= faults_end_) return;
  world_.after(pause, [this] {
    cause_fault();
    schedule_fault();
  });
}

void Simulation::cause_fault() {
  const int host = static_cast<int>(world_.below(static_cast<unsigned>(scenario_.hosts)));
  if (scenario_.mood == Mood::calm) {
    // An embedded one that pauses for longer is given up by its agents.
    if (world_.chance(0.2)) {
      const Duration most = scenario_.embedded ? milliseconds(3500) : seconds(15);
      coordinator_.freeze(world_.between(milliseconds(100), most));
    }
    return;
  }
  if (scenario_.mood == Mood::gentle) return network_.cut(host, true, true);
  SimAgent* agent = current(host);
  if (agent == nullptr) return;
  if (world_.chance(scenario_.misfits) && checkers_.job_ran()) {
    ++expected_;
    return start_agent(scenario_.hosts, true);
  }
  if (world_.chance(scenario_.interrupts)) {
    return agent->interrupt(world_.chance(0.5) ? SIGTERM : SIGINT);
  }
  if (world_.chance(scenario_.crashes)) return cause_crash(*agent, false);
  if (world_.chance(scenario_.host_crashes)) return cause_crash(*agent, true);
  checkers_.disturbed(agent->place().id);
  if (!agent->place().local && world_.chance(0.7)) return break_connections(host);
  const Duration pause = world_.between(milliseconds(100), seconds(20));
  agent->freeze(pause);
  if (agent->place().local) {
    coordinator_.freeze(pause);
    for (const auto& other : agents_) checkers_.disturbed(other->place().id);
  }
}

void Simulation::break_connections(int host) {
  switch (world_.below(4)) {
    case 0:
      return network_.cut(host, true, true);
    case 1: {
      const bool tell_agent = world_.chance(0.5);
      return network_.cut(host, tell_agent, !tell_agent);
    }
    case 2:
      return network_.partition(host, true, true, world_.between(milliseconds(100), seconds(25)));
    default: {
      const bool up = world_.chance(0.5);
      return network_.partition(host, up, !up, world_.between(milliseconds(100), seconds(25)));
    }
  }
}

// The order is lost, and so is all that is on its way to or from that host.
void Simulation::maybe_cut_at_start(int host, std::uint64_t round) {
  std::uint64_t& last = started_[host];
  if (around_.calmly || round <= last) return;
  last = round;
  if (!world_.chance(scenario_.cuts_at_start)) return;
  if (const SimAgent* agent = current(host)) checkers_.disturbed(agent->place().id);
  network_.cut(host, true, true);
}

void Simulation::maybe_die_while_closing() {
  if (!scenario_.embedded || !world_.chance(scenario_.dies_while_closing)) return;
  world_.after(world_.between(Duration{}, milliseconds(50)), [this] {
    SimAgent* agent = current(0);
    if (agent != nullptr && agent->place().local) cause_crash(*agent, world_.chance(0.3));
  });
}

void Simulation::cause_crash(SimAgent& agent, bool with_host) {
  const AgentPlace place = agent.place();
  agent.crash(with_host);
  all_lose_a_peer();
  if (place.local) return coordinator_.die();
  if (!world_.chance(scenario_.comes_back)) return;
  ++expected_;
  world_.after(world_.between(seconds(3), seconds(20)),
               [this, host = place.host] { start_agent(host, false); });
}

void Simulation::all_lose_a_peer() {
  for (const auto& agent : agents_) {
    if (!agent->gone()) agent->peers_lost();
  }
}

void Simulation::end_faults() {
  world_.record(21, [] { return std::string("the faults end"); });
  around_.calmly = true;
  network_.heal();
  coordinator_.thaw();
  for (const auto& agent : agents_) {
    if (!agent->gone()) agent->thaw();
  }
}

}  // namespace ddp::sim
