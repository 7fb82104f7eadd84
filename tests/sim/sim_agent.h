// One life of one agent on one host: the real agent and the real member, with scripted workers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "launcher/core/agent.h"
#include "rendezvous/core/member.h"
#include "tests/sim/checkers.h"
#include "tests/sim/network.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/world.h"

namespace ddp::sim {

// What the agents of a simulation share; outlives them.
struct Surroundings {
  World& world;
  const Scenario& scenario;
  Network& network;
  Checkers& checkers;
  SimCoordinator& coordinator;
  bool calmly = false;  // the time of faults is over
  std::function<void()> all_lose_a_peer = {};
};

struct AgentPlace {
  int host = 0;
  NodeId id;
  bool local = false;   // the coordinator is in its process
  bool misfit = false;  // was started with other terms than the rest
};

class SimAgent : public std::enable_shared_from_this<SimAgent> {
 public:
  SimAgent(Surroundings& around, AgentPlace place);

  void start();
  void interrupt(std::int32_t signal);
  // SIGKILL. Its guardian kills the workers; the kernel closes its connection, unless the whole
  // host is gone.
  void crash(bool with_host);
  void freeze(Duration how_long) { body_.freeze(how_long); }
  void thaw() { body_.thaw(); }
  // What is still meant for it holds it: to be called when the simulation ends.
  void let_go() { body_.forget(); }
  // Workers elsewhere have died, some of ours may die of it.
  void peers_lost();

  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] bool has_workers() const { return !workers_.empty(); }
  [[nodiscard]] const AgentPlace& place() const { return place_; }

 private:
  struct Worker {
    RoundId round;
    std::int32_t rank = 0;
    std::uint64_t serial = 0;
    bool ignores_term = false;
    bool asked = false;
  };

  struct Ending {
    std::int32_t exit_code = 0;
    std::int32_t signal = 0;
    bool tells_of_loss = false;
  };

  void tell_agent(const launcher::AgentEvent& event);
  void tell_member(const rendezvous::MemberEvent& event);
  void carry_out(const launcher::AgentEffects& effects);
  void carry_out(const rendezvous::MemberEffects& effects);

  void perform(const launcher::ReportStatus& effect);
  void perform(const launcher::OpenStore& effect);
  void perform(const launcher::CloseStore&) {}
  void perform(const launcher::SpawnWorkers& effect);
  void perform(const launcher::SignalWorker& effect);
  void perform(const launcher::KillWorker& effect);
  void perform(const launcher::PauseWorkers& effect);
  void perform(const launcher::ResumeWorkers& effect);
  void perform(const launcher::StopGuardian& effect);
  void perform(const launcher::ContinueGuardian& effect);
  void perform(const launcher::Hurry& effect);
  void perform(const launcher::SweepRemains& effect);
  void perform(const launcher::KillRemains& effect);
  void perform(const launcher::PublishDeath& effect);
  void perform(const launcher::Say& effect);
  void perform(const launcher::ExitAgent& effect);

  void perform(const rendezvous::Connect& effect);
  void perform(const rendezvous::Disconnect& effect);
  void perform(const rendezvous::Send& effect);
  void perform(const rendezvous::DeliverOrder& effect);
  void perform(const rendezvous::GiveUp& effect);
  void perform(const rendezvous::Remark& effect);

  void start_worker(std::int32_t local_rank, const RoundId& round, std::int32_t rank);
  void end_worker_after(Duration delay, std::int32_t local_rank, const Ending& ending);
  void end_worker(std::int32_t local_rank, std::uint64_t serial, const Ending& ending);
  // Unless it is gone by then; when it isn't frozen.
  void later(Duration delay, std::function<void()> action);
  void arm_timers();

  Surroundings& around_;
  AgentPlace place_;
  launcher::Agent agent_;
  rendezvous::Member member_;
  Freezable body_;
  LineHandle line_;
  std::optional<rendezvous::ConnectionId> connection_;
  std::map<std::int32_t, Worker> workers_;  // alive, by local rank
  std::optional<Instant> armed_;
  RoundId spawned_;   // the newest round with workers
  RoundId stopping_;  // the round whose workers have been told to end
  std::uint64_t serials_ = 0;
  bool was_interrupted_ = false;
  bool was_refused_ = false;
  bool lost_coordinator_ = false;
  bool gone_ = false;
};

}  // namespace ddp::sim
