#include "rendezvous/core/job.h"

#include <algorithm>
#include <utility>

#include "rendezvous/core/rank_assignment.h"
#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

std::string range(const NodeLimits& limits) {
  return std::to_string(limits.min) + ":" + std::to_string(limits.max);
}

}  // namespace

Job::Job(std::string run_id, JobTerms terms, JobTimes times, std::uint64_t seed, Instant now)
    : run_id_(std::move(run_id)),
      terms_(terms),
      times_(times),
      random_(seed),
      phase_(Forming{now, {}, {}, false}),
      pause_(terms.restart_delay) {}

JobEffects Job::handle(const JobEvent& event, Instant now) {
  JobEffects effects;
  std::visit([&](const auto& happened) { on(happened, now, effects); }, event);
  settle(now, effects);
  return effects;
}

JobEffects Job::on_time(Instant now) {
  JobEffects effects;
  settle(now, effects);
  return effects;
}

std::optional<Instant> Job::next_deadline() const {
  std::optional<Instant> earliest;
  const auto consider = [&earliest](Instant at) {
    earliest = earliest ? std::min(*earliest, at) : at;
  };
  for (const auto& [id, node] : nodes_) {
    if (node.overdue_since) {
      consider(*node.overdue_since + times_.second_look);
    } else if (const auto due = due_by(node)) {
      consider(*due);
    }
  }
  if (const auto* forming = std::get_if<Forming>(&phase_)) {
    if (const auto at = forming_deadline(*forming)) consider(*at);
  }
  if (const auto* closing = std::get_if<Closing>(&phase_)) {
    consider(closing->since + times_.closing);
  }
  return earliest;
}

// ---- what happened ---------------------------------------------------------------------------

void Job::on(const NodeJoined& event, Instant now, JobEffects& effects) {
  const NodeDescription& description = event.node;
  if (const auto objection = objection_to(description)) {
    effects.emplace_back(RefuseNode{
        description.id, Refuse{exit_code::kRefused, "job " + quoted(run_id_) + ": " + *objection}});
    return;
  }
  if (const Node* holder = holder_of_rank(description)) {
    lose(NodeId(holder->description.id), "another agent took its place", effects);
  }
  Node& node = nodes_[description.id];
  if (node.arrival == 0) node.arrival = ++arrivals_;
  node.description = description;
  node.local = event.local;
  node.last_heard = now;
  node.disconnected_at.reset();
  known_.insert(description.id);
  effects.emplace_back(OrdersChanged{});
}

// Each names both sides, so that the reader sees which of the two to change.
std::optional<std::string> Job::objection_to(const NodeDescription& node) const {
  if (verdict_ && known_.count(node.id) == 0) {
    return "it has ended already (exit code " + std::to_string(verdict_->exit_code) + ": " +
           verdict_->reason + "), host " + node.host + " comes too late; choose another run id";
  }
  if (node.limits != terms_.limits) {
    return "it was started with --nnodes " + range(terms_.limits) + ", host " + node.host +
           " says --nnodes " + range(node.limits) + "; use the same on every node";
  }
  if (node.max_restarts != terms_.max_restarts) {
    return "it was started with --max-restarts " + std::to_string(terms_.max_restarts) + ", host " +
           node.host + " says " + std::to_string(node.max_restarts) +
           "; use the same on every node";
  }
  if (node.notify != terms_.notify) {
    const auto mode = [](bool notify) { return notify ? "notify" : "restart"; };
    return std::string("it was started with --on-failure ") + mode(terms_.notify) + ", host " +
           node.host + " says " + mode(node.notify) + "; use the same on every node";
  }
  if (node.node_rank && (*node.node_rank < 0 || *node.node_rank >= terms_.limits.max)) {
    return "host " + node.host + " says --node-rank " + std::to_string(*node.node_rank) +
           ", but the job has " + std::to_string(terms_.limits.max) +
           " nodes at most, counted from 0";
  }
  // One that has just gone may have been restarted: then the newcomer takes its place.
  const Node* holder = holder_of_rank(node);
  if (holder != nullptr && !holder->disconnected_at) {
    return "--node-rank " + std::to_string(*node.node_rank) + " is held by host " +
           holder->description.host + ", host " + node.host +
           " claims it too; give each node its own";
  }
  return std::nullopt;
}

const Job::Node* Job::holder_of_rank(const NodeDescription& claimant) const {
  if (!claimant.node_rank) return nullptr;
  for (const auto& [id, node] : nodes_) {
    if (id != claimant.id && node.description.node_rank == claimant.node_rank) return &node;
  }
  return nullptr;
}

void Job::on(const NodeReported& event, Instant now, JobEffects& effects) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  node.last_heard = now;
  node.status = event.status;
  if (verdict_) return;
  const NodeStatus& status = event.status;
  Round* round = current_round();
  const Member* member = current_member(event.node);
  const bool takes_part = member != nullptr && !goes_on_without(*member);
  if (takes_part && status.round == round->id) {
    const bool had_master = round->master.has_value();
    const bool learnt = note_member_status(*round, event.node, status, now);
    if (learnt || (round->master && !had_master)) effects.emplace_back(OrdersChanged{});
  } else if (status.failure && status.failure->kind == FailureKind::interrupted) {
    note_wish_to_leave(event.node, *status.failure, now, effects);
  }
}

bool Job::note_member_status(Round& round, const NodeId& id, const NodeStatus& status,
                             Instant now) {
  Member* member = current_member(id);
  const NodeDescription& description = nodes_.at(id).description;
  if (member->placement.group_rank.value == 0 && status.store && !round.master) {
    round.master = status.store;
    if (round.master->host.empty()) round.master->host = description.address;
  }
  member->succeeded = member->succeeded || status.phase == NodePhase::succeeded;
  member->stopped = member->stopped || status.phase == NodePhase::stopped;
  member->lost_workers = std::max(member->lost_workers, status.lost_workers);
  const bool loss_learnt = status.loss && note_loss(round, *member, *status.loss, now);
  if (is_lost_with_its_launcher(*member, status)) {
    member->lost = true;
    round.losses.push_back({*status.failure, std::max(now - status.failure->age, round.started)});
    return true;
  }
  if (status.failure) return note_failure(round, *member, *status.failure, now) || loss_learnt;
  if (status.phase == NodePhase::failed ||
      (member->stopped && std::holds_alternative<Running>(phase_))) {
    Failure failure;
    failure.kind = FailureKind::launcher_failed;
    failure.host = description.host;
    failure.message = "it stopped its workers without saying why";
    return note_failure(round, *member, failure, now);
  }
  return loss_learnt;
}

// An agent that was interrupted starts no workers any more. A node that has no part in a round
// leaves alone; else the job ends with it.
void Job::note_wish_to_leave(const NodeId& id, const Failure& failure, Instant now,
                             JobEffects& effects) {
  const bool local = nodes_.at(id).local;
  Member* member = current_member(id);
  if (member != nullptr && !goes_on_without(*member)) {
    note_failure(*current_round(), *member, failure, now);
    // What it was ordered and has not begun never will be.
    member->stopped = member->stopped || !is_busy(*nodes_.at(id).status);
  } else if (local || (has_run() && std::holds_alternative<Forming>(phase_))) {
    RoundOutcome outcome = decide_outcome({{failure, now}}, {restarts_begun(), terms_.max_restarts});
    close(std::move(std::get<EndJob>(outcome).verdict), now, effects);
  } else {
    effects.emplace_back(RefuseNode{
        id, Refuse{exit_code_of(failure), "this node left before it had a part in the job"}});
    nodes_.erase(id);
    effects.emplace_back(OrdersChanged{});
  }
}

void Job::on(const NodeDisconnected& event, Instant now, JobEffects& effects) {
  const auto found = nodes_.find(event.node);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  const bool done = verdict_ && node.status && node.status->verdict_acknowledged;
  if (done) {
    nodes_.erase(found);
  } else if (!node.disconnected_at) {
    node.disconnected_at = now;
  }
  effects.emplace_back(OrdersChanged{});
}

// ---- loss ------------------------------------------------------------------------------------

std::optional<Instant> Job::due_by(const Node& node) const {
  if (node.disconnected_at) return *node.disconnected_at + times_.reconnect_grace;
  if (node.local) return std::nullopt;
  return node.last_heard + times_.silence;
}

// Whoever is overdue may have been heard while we were not running (paused, or busy), and its words
// wait to be read: so it is looked at twice.
void Job::lose_the_silent(Instant now, JobEffects& effects) {
  std::vector<NodeId> lost;
  for (auto& [id, node] : nodes_) {
    const auto due = due_by(node);
    if (!due || now < *due) {
      node.overdue_since.reset();
    } else if (!node.overdue_since) {
      node.overdue_since = now;
    } else if (now >= *node.overdue_since + times_.second_look) {
      lost.push_back(id);
    }
  }
  const auto silence = std::chrono::duration_cast<std::chrono::seconds>(times_.silence);
  for (const NodeId& id : lost) {
    lose(id,
         nodes_.at(id).disconnected_at
             ? "its connection was closed and it did not come back"
             : "nothing was heard of it for " + std::to_string(silence.count()) +
                   " s (host down, paused or cut off?)",
         effects);
  }
}

void Job::lose(const NodeId& id, const std::string& how, JobEffects& effects) {
  const Node& node = nodes_.at(id);
  Member* member = current_member(id);
  if (member != nullptr || node.previous_seat) lost_hosts_.push_back(node.description.host);
  if (member != nullptr && !std::exchange(member->lost, true)) {
    // The workers of a node that succeeded are done; but the store lives on group rank 0.
    if (!member->succeeded || member->placement.group_rank.value == 0) {
      Failure failure;
      failure.kind = FailureKind::node_lost;
      failure.host = node.description.host;
      failure.message = how;
      Round& round = *current_round();
      auto& list = can_survive_loss_of(*member) ? round.losses : round.failures;
      // Whoever missed it may have died of that: it counts from its last sign of life.
      list.push_back({failure, std::max(node.last_heard, round.started)});
    }
  }
  nodes_.erase(id);
  effects.emplace_back(DropNode{id});
  effects.emplace_back(OrdersChanged{});
}

// ---- the phases ------------------------------------------------------------------------------

void Job::settle(Instant now, JobEffects& effects) {
  lose_the_silent(now, effects);
  const auto step = [&] {
    return std::visit([&](auto& phase) { return settle(phase, now, effects); }, phase_);
  };
  while (step()) effects.emplace_back(OrdersChanged{});
}

bool Job::settle(Forming& forming, Instant now, JobEffects& effects) {
  if (forming.paused_until && now < *forming.paused_until) return false;
  forming.paused_until.reset();
  const auto ready = static_cast<std::int32_t>(ready_nodes().size());
  if (ready < terms_.limits.min) {
    forming.enough_since.reset();
    if (now < forming.since + times_.join || one_may_be_back()) return false;
    Verdict verdict;
    verdict.exit_code = has_run() ? exit_code::kNodeLost : exit_code::kRendezvousTimeout;
    verdict.reason = join_timeout_reason();
    verdict.restarts_used = restarts_begun();
    close(std::move(verdict), now, effects);
    return true;
  }
  if (!forming.enough_since) forming.enough_since = now;
  // After a round nobody is waited for who is not already here.
  const bool complete = ready >= terms_.limits.max ||
                        (has_run() && ready == static_cast<std::int32_t>(nodes_.size()));
  if (!complete && now < *forming.enough_since + times_.last_call) return false;
  start_round(now);
  return true;
}

bool Job::settle(Running& running, Instant now, JobEffects& effects) {
  Round& round = running.round;
  judge_losses(round, now);
  if (!round.failures.empty()) {
    Round stopping = std::move(round);
    phase_ = Stopping{std::move(stopping)};
    return true;
  }
  if (!all_have_ended(round)) return false;
  Verdict verdict;
  verdict.reason =
      round.losses.empty() ? "every worker succeeded" : "every worker that was not lost succeeded";
  if (const DatedFailure* loss = first_cause(round.losses)) verdict.failure = loss->failure;
  verdict.restarts_used = restarts_used_;
  close(std::move(verdict), now, effects);
  return true;
}

bool Job::settle(Stopping& stopping, Instant now, JobEffects& effects) {
  Round& round = stopping.round;
  const bool over = std::all_of(round.members.begin(), round.members.end(), [](const auto& entry) {
    return entry.second.stopped || entry.second.lost;
  });
  if (!over) return false;
  RoundOutcome outcome = decide_outcome(round.failures, {restarts_used_, terms_.max_restarts});
  if (auto* end = std::get_if<EndJob>(&outcome)) {
    close(std::move(end->verdict), now, effects);
  } else {
    const Instant failed = round.failed_at.value_or(first_cause(round.failures)->happened);
    form_again(failed - round.started, std::get<StartAgain>(outcome).costs_restart, now);
  }
  return true;
}

bool Job::settle(Closing& closing, Instant now, JobEffects&) {
  const bool all_know = std::all_of(nodes_.begin(), nodes_.end(), [](const auto& entry) {
    return entry.second.status && entry.second.status->verdict_acknowledged;
  });
  if (!all_know && now < closing.since + times_.closing) return false;
  phase_ = Closed{};
  return true;
}

std::int32_t Job::restarts_begun() const {
  const auto* forming = std::get_if<Forming>(&phase_);
  return restarts_used_ - (forming != nullptr && forming->costs_restart ? 1 : 0);
}

void Job::form_again(Duration ran, bool workers_failed, Instant now) {
  Forming forming{now, {}, {}, workers_failed};
  if (workers_failed) {
    ++restarts_used_;
    const Duration pause = pause_.after(ran);
    if (pause > Duration{}) forming.paused_until = now + pause;
  } else {
    pause_.forgive(ran);
  }
  phase_ = forming;
}

void Job::start_round(Instant now) {
  std::vector<const Node*> chosen = ready_nodes();
  std::stable_sort(chosen.begin(), chosen.end(), [](const Node* a, const Node* b) {
    return std::pair(!a->previous_seat, a->arrival) < std::pair(!b->previous_seat, b->arrival);
  });
  const auto most = static_cast<std::size_t>(terms_.limits.max);
  if (chosen.size() > most) chosen.resize(most);
  std::vector<SeatRequest> requests;
  for (const Node* node : chosen) {
    const NodeDescription& description = node->description;
    requests.push_back({description.id, description.workers, description.role,
                        description.node_rank, node->previous_seat});
  }
  const Seating seating = assign_seats(requests);

  Round round;
  round.id = {++round_number_, random_.next()};
  round.started = now;
  for (auto& [id, node] : nodes_) node.previous_seat.reset();
  for (const Seat& seat : seating.seats) {
    nodes_.at(seat.id).previous_seat = seat.group_rank.value;
    Member& member = round.members[seat.id];
    member.workers = nodes_.at(seat.id).description.workers;
    Placement& placement = member.placement;
    placement.round = round.id;
    placement.group_rank = seat.group_rank;
    placement.group_world_size = static_cast<std::int32_t>(seating.seats.size());
    placement.first_rank = seat.first_rank;
    placement.world_size = seating.world_size;
    placement.role_first_rank = seat.role_first_rank;
    placement.role_world_size = seat.role_world_size;
    placement.restart_count = restarts_used_;
    placement.max_restarts = terms_.max_restarts;
  }
  lost_hosts_.clear();
  phase_ = Running{std::move(round)};
}

void Job::close(Verdict verdict, Instant now, JobEffects& effects) {
  DDP_ASSERT(!verdict_);
  verdict_ = std::move(verdict);
  effects.emplace_back(JobDecided{*verdict_});
  effects.emplace_back(OrdersChanged{});
  phase_ = Closing{now};
}

}  // namespace ddp::rendezvous
