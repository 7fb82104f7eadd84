// What a job tells its nodes and people: everything here only reads.
#include <algorithm>
#include <string>
#include <utility>

#include "rendezvous/core/job.h"

namespace ddp::rendezvous {
namespace {

std::string nodes_wanted(const NodeLimits& limits) {
  return limits.min == limits.max
             ? std::to_string(limits.max)
             : std::to_string(limits.min) + " to " + std::to_string(limits.max);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string stop_reason(const DatedFailure* first) {
  if (first == nullptr) return "the round is over";
  const Failure& failure = first->failure;
  switch (failure.kind) {
    case FailureKind::worker_exited:
    case FailureKind::worker_signaled:
      return "rank " + std::to_string(failure.rank) + " failed on host " + failure.host;
    case FailureKind::spawn_failed:
      return "a worker could not be started on host " + failure.host;
    case FailureKind::interrupted:
      return "the launcher on host " + failure.host + " was told to stop";
    case FailureKind::node_lost:
      return "host " + failure.host + " was lost: " + failure.message;
    case FailureKind::launcher_failed:
      return "the launcher on host " + failure.host + " failed: " + failure.message;
  }
  return {};
}

}  // namespace

Order Job::order_for(const NodeId& id, Instant now) const {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return Wait{"the job does not know this node any more", {}};
  const std::optional<NodeStatus>& status = found->second.status;
  if (verdict_) {
    const bool acknowledged = status && status->verdict_acknowledged;
    if (closed() && acknowledged) return Leave{*verdict_};
    return Close{*verdict_};
  }
  const Round* round = current_round();
  const bool is_member = round != nullptr && round->members.count(id) != 0;
  const bool lives_elsewhere =
      status && is_busy(*status) && status->round && !(is_member && status->round == round->id);
  // Also to a member that was lost and is back: its round goes on or ends without it.
  if (lives_elsewhere) return Stop{*status->round, "that round is over", std::nullopt};
  if (is_member) {
    const Member& member = round->members.at(id);
    if (goes_on_without(member)) return order_for_lost(*round, status);
    if (std::holds_alternative<Running>(phase_)) {
      Run run{member.placement};
      run.placement.master = round->master;
      if (const DatedFailure* loss = first_cause(round->losses)) run.loss = loss->failure;
      return run;
    }
    const DatedFailure* first = first_cause(round->failures);
    return Stop{round->id, stop_reason(first),
                first == nullptr ? std::nullopt : std::optional(first->failure)};
  }
  if (const auto* forming = std::get_if<Forming>(&phase_)) {
    if (forming->paused_until) {
      return Wait{pause_reason(), std::max(Duration{}, *forming->paused_until - now), true};
    }
    const auto deadline = forming_deadline(*forming);
    return Wait{forming_reason(),
                deadline ? std::optional(std::max(Duration{}, *deadline - now)) : std::nullopt};
  }
  return Wait{place_reason(*round), std::nullopt};
}

// It is back, but the others have been told that it is lost.
Order Job::order_for_lost(const Round& round, const std::optional<NodeStatus>& status) {
  if (status && is_busy(*status)) {
    return Stop{round.id, "the job goes on without this node, which was lost", std::nullopt};
  }
  return Wait{place_reason(round), std::nullopt};
}

std::string Job::place_reason(const Round& round) {
  const auto others = std::count_if(round.members.begin(), round.members.end(),
                                    [](const auto& entry) { return !entry.second.lost; });
  return "the job runs on " + std::to_string(others) + " other nodes: waiting for a place";
}

std::string Job::state_line() const {
  if (verdict_) {
    const std::string what =
        verdict_->reason + " (exit code " + std::to_string(verdict_->exit_code) + ")";
    if (closed()) return "closed: " + what;
    const auto missing = std::count_if(nodes_.begin(), nodes_.end(), [](const auto& entry) {
      return !entry.second.status || !entry.second.status->verdict_acknowledged;
    });
    return "closing: " + what + "; waiting for " + std::to_string(missing) + " of " +
           std::to_string(nodes_.size()) + " nodes to acknowledge";
  }
  const Round* round = current_round();
  const auto* forming = std::get_if<Forming>(&phase_);
  if (forming != nullptr && forming->paused_until) return pause_reason();
  if (round == nullptr) return forming_reason();
  const std::string name = "round " + std::to_string(round->id.number);
  if (std::holds_alternative<Running>(phase_)) {
    return name + ": running on " + std::to_string(round->members.size()) +
           (round->members.size() == 1 ? " node" : " nodes") +
           (round->master ? "" : ", waiting for the worker store of group rank 0");
  }
  std::vector<std::string> hosts;
  for (const auto& [id, member] : round->members) {
    const auto node = nodes_.find(id);
    if (!member.stopped && !member.lost && node != nodes_.end()) {
      hosts.push_back(node->second.description.host);
    }
  }
  return name + ": stopping, " + stop_reason(first_cause(round->failures)) + "; waiting for " +
         joined(hosts);
}

std::string Job::forming_reason() const {
  const auto ready = static_cast<std::int32_t>(ready_nodes().size());
  std::string reason = std::to_string(ready) + " of " + nodes_wanted(terms_.limits) +
                       (terms_.limits.max == 1 ? " node" : " nodes");
  if (!lost_hosts_.empty()) reason += " (lost: " + joined(lost_hosts_) + ")";
  std::vector<std::string> busy;
  for (const auto& [id, node] : nodes_) {
    if (node.status && is_busy(*node.status)) busy.push_back(node.description.host);
  }
  if (!busy.empty()) return reason + ": waiting for " + joined(busy) + " to stop its workers";
  const bool enough = ready >= terms_.limits.min;
  const std::int32_t more = (enough ? terms_.limits.max : terms_.limits.min) - ready;
  return reason + (enough ? ": last call for " : ": waiting for ") + std::to_string(more) + " more";
}

std::string Job::pause_reason() const {
  return "restarting after a pause: workers have failed " +
         std::to_string(pause_.quick_failures()) + " times in a row right after their start";
}

std::string Job::join_timeout_reason() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(times_.join).count();
  std::vector<std::string> came;
  for (const auto& [id, node] : nodes_) {
    const NodeDescription& description = node.description;
    std::string who = "host " + description.host;
    if (!description.address.empty()) who += " (" + description.address + ")";
    if (description.node_rank) who += " as node rank " + std::to_string(*description.node_rank);
    came.push_back(who);
  }
  return (lost_hosts_.empty() ? std::string() : "lost " + joined(lost_hosts_) + ", and ") +
         std::to_string(ready_nodes().size()) + " of " + nodes_wanted(terms_.limits) +
         " nodes were there within " + std::to_string(seconds) +
         " s: " + (came.empty() ? "nobody" : joined(came));
}

bool Job::is_busy(const NodeStatus& status) {
  return status.phase != NodePhase::idle && status.phase != NodePhase::stopped;
}

bool Job::is_ready(const Node& node) const {
  return !node.disconnected_at && node.status && !is_busy(*node.status) &&
         !node.status->verdict_acknowledged &&
         !(node.status->failure && node.status->failure->kind == FailureKind::interrupted);
}

std::vector<const Job::Node*> Job::ready_nodes() const {
  std::vector<const Node*> ready;
  for (const auto& [id, node] : nodes_) {
    if (is_ready(node)) ready.push_back(&node);
  }
  return ready;
}

bool Job::one_may_be_back() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto& entry) { return entry.second.disconnected_at.has_value(); });
}

std::optional<Instant> Job::forming_deadline(const Forming& forming) const {
  if (forming.paused_until) return forming.paused_until;
  if (forming.enough_since) return *forming.enough_since + times_.last_call;
  if (one_may_be_back()) return std::nullopt;
  return forming.since + times_.join;
}

const Job::Round* Job::current_round() const {
  if (const auto* running = std::get_if<Running>(&phase_)) return &running->round;
  if (const auto* stopping = std::get_if<Stopping>(&phase_)) return &stopping->round;
  return nullptr;
}

Job::Round* Job::current_round() {
  return const_cast<Round*>(std::as_const(*this).current_round());
}

Job::Member* Job::current_member(const NodeId& id) {
  Round* round = current_round();
  if (round == nullptr) return nullptr;
  const auto found = round->members.find(id);
  return found == round->members.end() ? nullptr : &found->second;
}

}  // namespace ddp::rendezvous
