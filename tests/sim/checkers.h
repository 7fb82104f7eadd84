// What must hold after every event, whatever went wrong. Knows the truth of the simulated world and
// sees every message; throws Violation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/core/worker_plan.h"
#include "rendezvous/core/membership.h"
#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

namespace ddp::sim {

using rendezvous::NodeId;
using rendezvous::Order;
using rendezvous::Placement;
using rendezvous::RoundId;
using rendezvous::Verdict;

// One end of a worker, as it really was.
struct Death {
  RoundId round;
  std::int32_t rank = 0;
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  bool asked = false;      // its agent had told it to end, or was killed
  bool secondary = false;  // it says that it lost a peer
  Instant when;
  NodeId node = {};
  bool heard = false;  // by an agent that hadn't told any worker of the round to end
};

struct Farewell {  // how an agent exits
  NodeId node;
  std::int32_t exit_code = 0;
  std::optional<Verdict> verdict;
  bool interrupted = false;
  bool refused = false;
  bool lost_coordinator = false;
  bool misfit = false;
};

class Checkers {
 public:
  Checkers(const World& world, const Scenario& scenario) : world_(world), scenario_(scenario) {}

  // ---- the coordinator ----
  void node_attached(const NodeId& node);  // its hello was accepted
  void node_detached(const NodeId& node);  // its connection is closed, as the coordinator sees it
  void node_dropped(const NodeId& node);   // the coordinator closed it
  void ordered(const NodeId& node, const Order& order);
  void refused(const NodeId& node);
  void verdict_seen(const Verdict& verdict);
  void coordinator_paused() { coordinator_paused_ = true; }
  void coordinator_died() { coordinator_dead_ = true; }

  // ---- the nodes ----
  void agent_started(const NodeId& node, bool misfit);
  void interrupted(const NodeId& node, std::int32_t signal);
  void disturbed(const NodeId& node) { disturbed_.insert(node); }
  void store_opened(const RoundId& round, std::uint16_t port);
  void spawned(const NodeId& node, const RoundId& round, const launcher::RoundPlan& plan);
  void spawn_was_made_to_fail(std::int32_t exit_code) { injected_codes_.insert(exit_code); }
  void worker_ended(const NodeId& node, const Death& death);
  void told_to_end(const RoundId& round);                    // its workers on some node
  void published(const NodeId& node, const RoundId& round);  // a death, to its workers
  void death_heard(const NodeId& node, const RoundId& round, std::int32_t rank);
  void received(const NodeId& node, const Order& order);
  void agent_exited(const Farewell& farewell);
  void agent_crashed(const NodeId& node) { disturbed_.insert(node); }

  [[nodiscard]] bool job_ran() const { return !rounds_.empty(); }
  [[nodiscard]] const std::optional<Verdict>& verdict() const { return verdict_; }

 private:
  struct RoundTruth {
    RoundId id;
    std::map<NodeId, Placement> placements;
    std::optional<std::uint16_t> store_port;
    std::map<std::int32_t, NodeId> spawned;  // by rank
    std::vector<Death> deaths;
    std::map<std::int32_t, Instant> ended_well;  // by rank
    std::set<NodeId> told;                       // of a death
    std::int32_t succeeded = 0;
    bool lost_a_node = false;
    Instant began{};
    Instant last_end{};  // of a worker
  };

  void check(bool holds, const char* promise) const;
  void run_ordered(const NodeId& node, const Placement& placement);
  void pause_ordered(const rendezvous::Wait& wait);
  void check_pause(const RoundTruth& last, bool charged);
  void round_begins(const Placement& placement);
  void check_dense(const RoundTruth& round) const;
  void check_stable(const RoundTruth& before, const RoundTruth& after) const;
  void check_verdict(const Verdict& verdict) const;
  void check_failure(const rendezvous::Failure& failure, const RoundTruth& last) const;
  void check_end_was_needed(const RoundTruth& round) const;
  void check_survived(const Verdict& verdict, const RoundTruth& last) const;
  void check_blame(const Death& blamed, const RoundTruth& last) const;
  void lost(const NodeId& node);
  [[nodiscard]] bool is_lost(const NodeId& node, std::uint64_t round) const;
  [[nodiscard]] std::uint64_t newest() const {
    return rounds_.empty() ? 0 : rounds_.rbegin()->first;
  }

  const World& world_;
  const Scenario& scenario_;
  std::map<std::uint64_t, RoundTruth> rounds_;               // by number
  std::map<NodeId, std::map<std::int32_t, RoundId>> alive_;  // rank -> round, on each node
  std::map<NodeId, Instant> attached_at_;
  std::map<NodeId, Instant> detached_since_;
  std::map<NodeId, std::uint64_t> lost_in_round_;  // the newest one then
  std::map<NodeId, std::int32_t> interrupted_;     // signal
  std::set<NodeId> attached_once_;
  std::set<NodeId> knows_verdict_;
  std::set<NodeId> disturbed_;
  std::set<NodeId> misfits_;
  std::set<NodeId> refused_;
  std::set<std::int32_t> injected_codes_;
  std::optional<Verdict> verdict_;
  Instant verdict_at_{};
  Instant pause_ends_{};
  int quick_failures_ = 0;  // in a row, at least so many
  bool coordinator_paused_ = false;
  bool coordinator_dead_ = false;
};

}  // namespace ddp::sim
