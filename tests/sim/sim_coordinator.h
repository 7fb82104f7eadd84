// The real coordinator in the simulated world, in the place of its shell.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "rendezvous/core/coordinator.h"
#include "tests/sim/checkers.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace ddp::sim {

using rendezvous::SessionId;

class SimCoordinator {
 public:
  SimCoordinator(World& world, Network& network, Checkers& checkers,
                 rendezvous::CoordinatorSetup setup);

  // The coordinator's end of a connection that is about to be made; `line()` gives the connection.
  [[nodiscard]] LineEnd make_end(int host, bool local, std::function<LineHandle()> line);
  void freeze(Duration how_long) {
    checkers_.coordinator_paused();
    body_.freeze(how_long);
  }
  void thaw() { body_.thaw(); }
  // Called when the job has its verdict.
  void on_verdict(std::function<void()> action) { on_verdict_ = std::move(action); }
  // Called when a host has been ordered to run that round.
  void on_run(std::function<void(int host, std::uint64_t round)> action) {
    on_run_ = std::move(action);
  }
  // Its process is gone.
  void die();
  // The agent beside it is done: lives on until all others are gone, 10 s at most.
  void finish();
  [[nodiscard]] bool dead() const { return dead_; }

 private:
  struct Session {
    LineHandle line;
    int host;
    bool local;
    std::optional<rendezvous::NodeId> node;
  };

  void dispatch(const rendezvous::CoordinatorEvent& event);
  void carry_out(const rendezvous::CoordinatorEffects& effects);
  void carry_out(const rendezvous::SendMessage& effect);
  void carry_out(const rendezvous::CloseSession& effect);
  void carry_out(const rendezvous::JobClosed& effect);
  void carry_out(const rendezvous::JobStateChanged& effect);
  void carry_out(const rendezvous::NodeRefused& effect);
  void session_closed(SessionId session);
  void arm_timer();
  void die_if_alone();

  World& world_;
  Network& network_;
  Checkers& checkers_;
  rendezvous::Coordinator machine_;
  Freezable body_;
  std::map<SessionId, Session> sessions_;
  std::function<void()> on_verdict_;
  std::function<void(int host, std::uint64_t round)> on_run_;
  std::optional<Instant> armed_;
  std::uint64_t next_session_ = 0;
  bool finishing_ = false;
  bool dead_ = false;
};

}  // namespace ddp::sim
