#include "tests/sim/sim_agent.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "tests/sim/describe.h"

namespace ddp::sim {
namespace {

using launcher::LaunchConfig;
using rendezvous::Endpoint;
using rendezvous::LocalRank;
using rendezvous::Port;

std::string host_name(const AgentPlace& place) {
  return "host" + std::to_string(place.host);
}

std::int32_t workers_on(const Scenario& scenario, const AgentPlace& place) {
  return scenario.workers[static_cast<std::size_t>(place.host)];
}

LaunchConfig config_of(const Scenario& scenario, const AgentPlace& place) {
  LaunchConfig config;
  config.program = "worker";
  config.workers = workers_on(scenario, place);
  config.nodes = scenario.limits;
  config.max_restarts = scenario.max_restarts;
  config.shutdown_timeout = scenario.shutdown_timeout;
  if (scenario.notify) config.on_failure = launcher::OnFailure::notify;
  return config;
}

rendezvous::MemberSetup setup_of(const Scenario& scenario, const AgentPlace& place,
                                 std::uint64_t seed) {
  rendezvous::MemberSetup setup;
  setup.run_id = "job";
  setup.seed = seed;
  setup.coordinator = "coordinator";
  setup.node.id = place.id;
  setup.node.host = host_name(place);
  setup.node.workers = workers_on(scenario, place);
  setup.node.limits = scenario.limits;
  setup.node.max_restarts = scenario.max_restarts + (place.misfit ? 1 : 0);
  setup.node.restart_delay = scenario.restart_delay;
  setup.node.notify = scenario.notify;
  if (scenario.fixed_ranks && !place.misfit) setup.node.node_rank = place.host;
  return setup;
}

}  // namespace

SimAgent::SimAgent(Surroundings& around, AgentPlace place)
    : around_(around),
      place_(std::move(place)),
      agent_(config_of(around.scenario, place_), host_name(place_), place_.id, {}),
      member_(setup_of(around.scenario, place_, around.world.below(1'000'000))),
      body_(around.world) {}

void SimAgent::start() {
  around_.world.record(10, [&] { return name(place_.id) + " starts on " + host_name(place_); });
  around_.checkers.agent_started(place_.id, place_.misfit);
  carry_out(member_.on_time(around_.world.now()));
  arm_timers();
}

void SimAgent::interrupt(std::int32_t signal) {
  was_interrupted_ = true;
  around_.checkers.interrupted(place_.id, signal);
  around_.world.record(11, [&] { return name(place_.id) + " is interrupted"; });
  body_.run([self = shared_from_this(), signal] {
    if (!self->gone_) self->tell_agent(launcher::SignalReceived{signal});
  });
}

void SimAgent::crash(bool with_host) {
  if (std::exchange(gone_, true)) return;
  around_.world.record(12,
                       [&] { return name(place_.id) + (with_host ? " vanishes" : " crashes"); });
  around_.checkers.agent_crashed(place_.id);
  if (line_ && with_host) around_.network.vanish(line_);
  if (line_ && !with_host) around_.network.close_from_agent(line_);
  for (auto& [local_rank, worker] : workers_) {
    worker.asked = true;
    end_worker_after(around_.world.between(Duration{}, seconds(2)), local_rank, {-1, SIGKILL});
  }
}

void SimAgent::peers_lost() {
  for (auto& [local_rank, worker] : workers_) {
    if (!around_.world.chance(around_.scenario.survivor_follows)) continue;
    const bool tells = around_.world.chance(around_.scenario.tells_of_loss);
    end_worker_after(around_.world.between(milliseconds(1), milliseconds(500)), local_rank,
                     {1, 0, tells});
  }
}

// ---- events in -------------------------------------------------------------------------------

void SimAgent::tell_agent(const launcher::AgentEvent& event) {
  carry_out(agent_.handle(event, around_.world.now()));
  arm_timers();
}

void SimAgent::tell_member(const rendezvous::MemberEvent& event) {
  carry_out(member_.handle(event, around_.world.now()));
  arm_timers();
}

void SimAgent::carry_out(const launcher::AgentEffects& effects) {
  for (const auto& effect : effects) {
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void SimAgent::carry_out(const rendezvous::MemberEffects& effects) {
  for (const auto& effect : effects) {
    std::visit([this](const auto& wanted) { perform(wanted); }, effect);
  }
}

void SimAgent::later(Duration delay, std::function<void()> action) {
  around_.world.after(delay, [self = shared_from_this(), action = std::move(action)] {
    self->body_.run([self, action] {
      if (!self->gone_) action();
    });
  });
}

void SimAgent::arm_timers() {
  if (gone_) return;
  std::optional<Instant> next = agent_.next_deadline();
  if (const auto member = member_.next_deadline()) next = next ? std::min(*next, *member) : member;
  if (!next || (armed_ && *armed_ <= *next)) return;
  armed_ = next;
  later(*next - around_.world.now(), [this] {
    armed_.reset();
    carry_out(agent_.on_time(around_.world.now()));
    if (!gone_) carry_out(member_.on_time(around_.world.now()));
    arm_timers();
  });
}

// ---- what the agent wants --------------------------------------------------------------------

void SimAgent::perform(const launcher::ReportStatus& effect) {
  tell_member(rendezvous::StatusChanged{effect.status});
}

void SimAgent::perform(const launcher::OpenStore& effect) {
  World& world = around_.world;
  const bool fails = !around_.calmly && world.chance(around_.scenario.store_fails);
  const auto port = static_cast<std::uint16_t>(1 + world.below(65'000));
  if (fails) around_.checkers.spawn_was_made_to_fail(rendezvous::exit_code::kLauncherFailed);
  later(world.between(Duration{}, milliseconds(50)), [this, round = effect.round, fails, port] {
    if (fails) return tell_agent(launcher::StoreFailed{round, "no port is free"});
    around_.checkers.store_opened(round, port);
    tell_agent(launcher::StoreOpened{round, Endpoint{host_name(place_), Port{port}}});
  });
}

void SimAgent::perform(const launcher::SpawnWorkers& effect) {
  World& world = around_.world;
  const RoundId round = effect.placement.round;
  if (!around_.calmly && world.chance(around_.scenario.spawn_fails)) {
    around_.checkers.spawn_was_made_to_fail(rendezvous::exit_code::kNotFound);
    later(milliseconds(1), [this, round] {
      tell_agent(launcher::SpawnFailed{round, LocalRank{0}, rendezvous::exit_code::kNotFound,
                                       "no such file"});
    });
    return;
  }
  spawned_ = round;
  around_.checkers.spawned(place_.id, round, effect.plan);
  launcher::WorkersSpawned spawned{round, {}};
  for (const launcher::WorkerPlan& worker : effect.plan.workers) {
    start_worker(worker.local_rank.value, round, worker.rank.value);
    spawned.pids.push_back(static_cast<std::int64_t>(serials_));
  }
  later(Duration{}, [this, spawned] { tell_agent(spawned); });
}

void SimAgent::perform(const launcher::SignalWorker& effect) {
  const auto found = workers_.find(effect.local_rank.value);
  if (found == workers_.end() || effect.signal == SIGCONT) return;
  found->second.asked = true;
  stopping_ = found->second.round;
  around_.checkers.told_to_end(stopping_);
  if (found->second.ignores_term) return;
  const bool well = around_.world.chance(0.2);  // it saves its state
  end_worker_after(around_.world.between(milliseconds(1), milliseconds(300)),
                   effect.local_rank.value, well ? Ending{} : Ending{-1, effect.signal});
}

void SimAgent::perform(const launcher::KillWorker& effect) {
  const auto found = workers_.find(effect.local_rank.value);
  if (found == workers_.end()) return;
  found->second.asked = true;
  stopping_ = found->second.round;
  end_worker_after(around_.world.between(milliseconds(1), milliseconds(5)), effect.local_rank.value,
                   {-1, SIGKILL});
}

// Nobody suspends a simulated job.
void SimAgent::perform(const launcher::PauseWorkers&) {}
void SimAgent::perform(const launcher::ResumeWorkers&) {}
void SimAgent::perform(const launcher::StopGuardian&) {}
void SimAgent::perform(const launcher::ContinueGuardian&) {}

// Nobody reads what it says.
void SimAgent::perform(const launcher::Hurry&) {}

void SimAgent::perform(const launcher::SweepRemains& effect) {
  stopping_ = effect.round;
  // What some stopped worker left doesn't obey.
  if (!effect.spared.empty() && around_.world.chance(0.1)) return;
  later(around_.world.between(Duration{}, milliseconds(50)),
        [this, round = effect.round] { tell_agent(launcher::RemainsGone{round}); });
}

void SimAgent::perform(const launcher::KillRemains& effect) {
  later(around_.world.between(Duration{}, milliseconds(50)),
        [this, round = effect.round] { tell_agent(launcher::RemainsGone{round}); });
}

void SimAgent::perform(const launcher::PublishDeath&) {
  if (!workers_.empty()) around_.checkers.published(place_.id, spawned_);
  peers_lost();
}

void SimAgent::perform(const launcher::Say& effect) {
  around_.world.record(13, [&] { return name(place_.id) + " says: " + effect.text; });
}

void SimAgent::perform(const launcher::ExitAgent& effect) {
  if (std::exchange(gone_, true)) return;
  around_.world.record(static_cast<std::uint64_t>(effect.exit_code), [&] {
    return name(place_.id) + " exits with " + std::to_string(effect.exit_code);
  });
  Farewell farewell;
  farewell.node = place_.id;
  farewell.exit_code = effect.exit_code;
  farewell.verdict = effect.verdict;
  farewell.interrupted = was_interrupted_;
  farewell.refused = was_refused_;
  farewell.lost_coordinator = lost_coordinator_;
  farewell.misfit = place_.misfit;
  around_.checkers.agent_exited(farewell);
  if (line_) around_.network.close_from_agent(line_);
  if (place_.local) around_.coordinator.finish();
}

// ---- what the member wants -------------------------------------------------------------------

void SimAgent::perform(const rendezvous::Connect& effect) {
  const auto connection = effect.connection;
  const auto self = shared_from_this();
  const auto told = [self](const rendezvous::MemberEvent& event) {
    self->body_.run([self, event] {
      if (!self->gone_) self->tell_member(event);
    });
  };
  LineEnd ours;
  ours.opened = [told, connection] { told(rendezvous::Connected{connection}); };
  ours.received = [told, connection](const Message& message) {
    told(rendezvous::MessageArrived{connection, message});
  };
  ours.closed = [told, connection](const std::string& why) {
    told(rendezvous::ConnectionFailed{connection, why});
  };
  const auto line = std::make_shared<LineHandle>();
  LineEnd theirs =
      around_.coordinator.make_end(place_.host, place_.local, [line] { return *line; });
  *line = around_.network.connect(place_.host, place_.local, std::move(ours), std::move(theirs));
  line_ = *line;
  connection_ = connection;
}

void SimAgent::perform(const rendezvous::Disconnect& effect) {
  if (connection_ == effect.connection) around_.network.close_from_agent(line_);
}

void SimAgent::perform(const rendezvous::Send& effect) {
  around_.world.record(14, [&] { return name(place_.id) + " -> C " + describe(effect.message); });
  if (connection_ == effect.connection) around_.network.send_up(line_, effect.message);
}

void SimAgent::perform(const rendezvous::DeliverOrder& effect) {
  around_.checkers.received(place_.id, effect.order);
  if (std::holds_alternative<rendezvous::Refuse>(effect.order)) was_refused_ = true;
  later(Duration{}, [this, order = effect.order] { tell_agent(launcher::OrderReceived{order}); });
}

void SimAgent::perform(const rendezvous::GiveUp& effect) {
  lost_coordinator_ = true;
  around_.world.record(15, [&] { return name(place_.id) + " gives up: " + effect.reason; });
  later(Duration{}, [this, effect] {
    tell_agent(launcher::CoordinatorLost{effect.exit_code, effect.reason});
  });
}

void SimAgent::perform(const rendezvous::Remark& effect) {
  around_.world.record(16, [&] { return name(place_.id) + ": " + effect.text; });
}

// ---- workers ---------------------------------------------------------------------------------

void SimAgent::start_worker(std::int32_t local_rank, const RoundId& round, std::int32_t rank) {
  const Behaviour behaviour = draw_behaviour(around_.world, around_.scenario, around_.calmly);
  Worker worker;
  worker.round = round;
  worker.rank = rank;
  worker.serial = ++serials_;
  worker.ignores_term = behaviour.ignores_term;
  workers_[local_rank] = worker;
  const Ending ending{behaviour.signal != 0 ? -1 : behaviour.exit_code, behaviour.signal};
  if (!behaviour.lingers) return end_worker_after(behaviour.lasts, local_rank, ending);
  // Its connections are closed some time before it has dumped its core, or tidied up.
  around_.world.after(
      behaviour.lasts, [self = shared_from_this(), local_rank, serial = worker.serial, ending] {
        const auto found = self->workers_.find(local_rank);
        if (found == self->workers_.end() || found->second.serial != serial) return;
        self->end_worker_after(self->around_.world.between(milliseconds(1), seconds(5)), local_rank,
                               ending);
        self->around_.all_lose_a_peer();
      });
}

void SimAgent::end_worker_after(Duration delay, std::int32_t local_rank, const Ending& ending) {
  const std::uint64_t serial = workers_.at(local_rank).serial;
  around_.world.after(delay, [self = shared_from_this(), local_rank, serial, ending] {
    self->end_worker(local_rank, serial, ending);
  });
}

void SimAgent::end_worker(std::int32_t local_rank, std::uint64_t serial, const Ending& ending) {
  const auto found = workers_.find(local_rank);
  if (found == workers_.end() || found->second.serial != serial) return;
  const Worker worker = found->second;
  workers_.erase(found);
  around_.world.record(static_cast<std::uint64_t>(worker.rank) << 8, [&] {
    return name(place_.id) + ": rank " + std::to_string(worker.rank) + " ends with " +
           (ending.signal != 0 ? "signal " + std::to_string(ending.signal)
                               : std::to_string(ending.exit_code)) +
           (ending.tells_of_loss ? ", it lost a peer" : "");
  });
  around_.checkers.worker_ended(
      place_.id, Death{worker.round, worker.rank, ending.exit_code, ending.signal, worker.asked,
                       ending.tells_of_loss, around_.world.now()});
  later(Duration{}, [this, local_rank, worker, ending] {
    launcher::WorkerExit exit{LocalRank{local_rank}, ending.exit_code, ending.signal,
                              ending.signal == SIGSEGV};
    if (ending.tells_of_loss) exit.last_output = "RuntimeError: Connection reset by peer\n";
    if (stopping_ != worker.round)
      around_.checkers.death_heard(place_.id, worker.round, worker.rank);
    tell_agent(launcher::WorkersExited{worker.round, {exit}});
  });
}

}  // namespace ddp::sim
