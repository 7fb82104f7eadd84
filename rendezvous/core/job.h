// One job: who takes part in it, in which round it is, what each node is told, and how it ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/random_bits.h"
#include "rendezvous/core/restart_pause.h"
#include "rendezvous/core/round_outcome.h"
#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

struct JobTimes {
  Duration join = std::chrono::seconds(600);                   // until enough nodes are there
  Duration last_call = std::chrono::seconds(30);               // for more than the minimum
  Duration reconnect_grace = std::chrono::milliseconds(1000);  // after a closed connection
  Duration silence = std::chrono::milliseconds(5000);          // on an open one
  Duration second_look = std::chrono::milliseconds(200);       // at one that is overdue
  Duration closing = std::chrono::seconds(60);                 // until all have acknowledged
};

struct JobTerms {
  NodeLimits limits;
  std::int32_t max_restarts = 0;
  Duration restart_delay{};  // longest pause before a restart
  bool notify = false;       // who is not lost may live on
};

// ---- what can happen -------------------------------------------------------------------------

struct NodeJoined {
  NodeDescription node;
  bool local = false;  // in the coordinator's process: its silence means nothing
};
struct NodeReported {
  NodeId node;
  NodeStatus status;
};
struct NodeDisconnected {
  NodeId node;
};
using JobEvent = std::variant<NodeJoined, NodeReported, NodeDisconnected>;

// ---- what to do ------------------------------------------------------------------------------

struct OrdersChanged {};  // ask order_for() for every node again
struct RefuseNode {       // tell it, then close its connection
  NodeId node;
  Refuse refuse;
};
struct DropNode {  // it is lost: close its connection, if there is one
  NodeId node;
};
struct JobDecided {  // from here on only told, never changed
  Verdict verdict;
};
using JobEffect = std::variant<OrdersChanged, RefuseNode, DropNode, JobDecided>;
using JobEffects = std::vector<JobEffect>;

// Level-triggered inside as well: an event only changes what is known, then settle() compares what
// is known with what the phase waits for. Every phase's rule stands in its own settle function.
class Job {
 public:
  // `seed` draws the nonces of the rounds.
  Job(std::string run_id, JobTerms terms, JobTimes times, std::uint64_t seed, Instant now);

  [[nodiscard]] JobEffects handle(const JobEvent& event, Instant now);
  [[nodiscard]] JobEffects on_time(Instant now);
  [[nodiscard]] std::optional<Instant> next_deadline() const;

  // What holds for that node at this moment.
  [[nodiscard]] Order order_for(const NodeId& node, Instant now) const;
  // The phase and what it waits for, one line: "1 of 2 nodes: waiting for 1 more".
  [[nodiscard]] std::string state_line() const;

  [[nodiscard]] const std::optional<Verdict>& verdict() const { return verdict_; }
  [[nodiscard]] bool closed() const { return std::holds_alternative<Closed>(phase_); }
  // Nobody is here and nothing has happened yet: it may as well never have been.
  [[nodiscard]] bool vacant() const { return nodes_.empty() && !has_run() && !verdict_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }

 private:
  struct Node {
    NodeDescription description;
    bool local = false;
    std::int64_t arrival = 0;  // counts up over the nodes of the job
    Instant last_heard;
    std::optional<Instant> disconnected_at;
    std::optional<Instant> overdue_since;
    std::optional<NodeStatus> status;           // none heard yet
    std::optional<std::int32_t> previous_seat;  // group rank in the last round
  };
  struct Member {
    Placement placement;
    bool succeeded = false;
    bool stopped = false;  // nothing of the round is left there
    bool lost = false;
    std::optional<std::size_t> failure;       // its place in `failures`
    std::optional<std::size_t> interruption;  // likewise; it may come while a failure is dealt with
    std::optional<std::size_t> loss;          // its place in `losses`
    std::int32_t workers = 0;
    std::int32_t lost_workers = 0;
  };
  struct Round {
    RoundId id;
    Instant started;
    std::map<NodeId, Member> members;
    std::optional<Endpoint> master;
    std::vector<DatedFailure> failures;
    std::vector<DatedFailure> losses;  // that the others may survive
    std::optional<Instant> failed_at;  // where it survived losses: when it did so no longer
  };

  struct Forming {
    Instant since;
    std::optional<Instant> enough_since;  // at least the minimum are ready
    std::optional<Instant> paused_until;  // nothing is begun before
    bool costs_restart = false;           // it is counted already, but not begun
  };
  struct Running {
    Round round;
  };
  struct Stopping {
    Round round;
  };
  struct Closing {
    Instant since;
  };
  struct Closed {};
  using Phase = std::variant<Forming, Running, Stopping, Closing, Closed>;

  void on(const NodeJoined& event, Instant now, JobEffects& effects);
  void on(const NodeReported& event, Instant now, JobEffects& effects);
  void on(const NodeDisconnected& event, Instant now, JobEffects& effects);

  [[nodiscard]] std::optional<std::string> objection_to(const NodeDescription& node) const;
  [[nodiscard]] const Node* holder_of_rank(const NodeDescription& claimant) const;
  // Both: whether they learnt of a failure, or something better about one.
  static bool note_failure(Round& round, Member& member, const Failure& failure, Instant now);
  static bool note_loss(Round& round, Member& member, const Failure& loss, Instant now);
  static bool note(std::vector<DatedFailure>& list, std::optional<std::size_t>& place,
                   DatedFailure told);
  // The round runs on though this member was lost.
  [[nodiscard]] bool goes_on_without(const Member& member) const;
  [[nodiscard]] bool can_survive_loss_of(const Member& member) const;
  [[nodiscard]] bool is_lost_with_its_launcher(const Member& member,
                                               const NodeStatus& status) const;
  static void judge_losses(Round& round, Instant now);
  [[nodiscard]] static bool all_have_ended(const Round& round);
  bool note_member_status(Round& round, const NodeId& id, const NodeStatus& status, Instant now);
  void note_wish_to_leave(const NodeId& id, const Failure& failure, Instant now,
                          JobEffects& effects);
  void lose(const NodeId& id, const std::string& how, JobEffects& effects);
  [[nodiscard]] std::optional<Instant> due_by(const Node& node) const;
  void lose_the_silent(Instant now, JobEffects& effects);

  // Each may change the phase, and says whether it did.
  void settle(Instant now, JobEffects& effects);
  bool settle(Forming& forming, Instant now, JobEffects& effects);
  bool settle(Running& running, Instant now, JobEffects& effects);
  bool settle(Stopping& stopping, Instant now, JobEffects& effects);
  bool settle(Closing& closing, Instant now, JobEffects& effects);
  bool settle(Closed&, Instant, JobEffects&) { return false; }
  void start_round(Instant now);
  [[nodiscard]] std::int32_t restarts_begun() const;
  void form_again(Duration ran, bool workers_failed, Instant now);
  void close(Verdict verdict, Instant now, JobEffects& effects);

  [[nodiscard]] Round* current_round();
  [[nodiscard]] const Round* current_round() const;
  [[nodiscard]] Member* current_member(const NodeId& id);
  // Workers of a round may be alive there, or it still has to sweep up after them.
  [[nodiscard]] static bool is_busy(const NodeStatus& status);
  [[nodiscard]] bool is_ready(const Node& node) const;
  [[nodiscard]] std::vector<const Node*> ready_nodes() const;
  // Within its grace: nobody gives up for want of it.
  [[nodiscard]] bool one_may_be_back() const;
  [[nodiscard]] std::optional<Instant> forming_deadline(const Forming& forming) const;
  [[nodiscard]] bool has_run() const { return round_number_ > 0; }
  [[nodiscard]] static Order order_for_lost(const Round& round,
                                            const std::optional<NodeStatus>& status);
  [[nodiscard]] static std::string place_reason(const Round& round);
  [[nodiscard]] std::string forming_reason() const;
  [[nodiscard]] std::string pause_reason() const;
  [[nodiscard]] std::string join_timeout_reason() const;

  std::string run_id_;
  JobTerms terms_;
  JobTimes times_;
  RandomBits random_;
  Phase phase_;
  std::map<NodeId, Node> nodes_;         // those that are not lost
  std::set<NodeId> known_;               // all that ever took part
  std::vector<std::string> lost_hosts_;  // since the last round began, for people
  std::optional<Verdict> verdict_;       // once set, never replaced
  std::int64_t arrivals_ = 0;
  std::uint64_t round_number_ = 0;
  std::int32_t restarts_used_ = 0;
  RestartPause pause_;
};

}  // namespace ddp::rendezvous
