// A job and its nodes, named by single words, for tests: time passes only when it is told to.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/core/job.h"

namespace ddp::rendezvous::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline NodeId node_id(const std::string& name) {
  NodeId id{std::string(32, '0')};
  id.value.replace(32 - name.size(), name.size(), name);
  return id;
}

inline NodeDescription description(const std::string& name, NodeLimits limits = {2, 2},
                                   std::int32_t max_restarts = 1) {
  NodeDescription node;
  node.id = node_id(name);
  node.host = name;
  node.address = "10.0.0." + name;
  node.limits = limits;
  node.max_restarts = max_restarts;
  return node;
}

inline NodeStatus status_of(NodePhase phase, std::optional<RoundId> round = {}) {
  NodeStatus status;
  status.phase = phase;
  status.round = round;
  return status;
}

inline Failure worker_failure(std::int32_t exit_code, std::int32_t rank = 0) {
  Failure failure;
  failure.rank = rank;
  failure.host = "a";
  failure.exit_code = exit_code;
  return failure;
}

inline Failure interruption(std::int32_t signal) {
  Failure failure;
  failure.kind = FailureKind::interrupted;
  failure.host = "a";
  failure.signal = signal;
  return failure;
}

class JobScene {
 public:
  explicit JobScene(NodeLimits limits = {2, 2}, std::int32_t max_restarts = 1,
                    Duration restart_delay = {}, bool notify = false)
      : limits_(limits),
        max_restarts_(max_restarts),
        notify_(notify),
        job_("job", {limits, max_restarts, restart_delay, notify}, JobTimes{}, 42, now_) {}

  // A node with the job's terms.
  [[nodiscard]] NodeDescription described(const std::string& name) const {
    NodeDescription node = description(name, limits_, max_restarts_);
    node.notify = notify_;
    return node;
  }

  // Empty, or why it was refused.
  std::string join(NodeDescription node, bool local = false) {
    return refusal(job_.handle(NodeJoined{std::move(node), local}, now_));
  }
  // Joins and says that it is idle.
  std::string arrive(const std::string& name) {
    std::string refused = join(described(name));
    if (refused.empty()) report(name, status_of(NodePhase::idle));
    return refused;
  }
  std::string report(const std::string& name, const NodeStatus& status) {
    return refusal(job_.handle(NodeReported{node_id(name), status}, now_));
  }
  // The node says this of the round that it is in.
  std::string report(const std::string& name, NodePhase phase,
                     std::optional<Failure> failure = {}) {
    NodeStatus status = status_of(phase, round_);
    status.failure = std::move(failure);
    return report(name, status);
  }
  void disconnect(const std::string& name) {
    effects_ = job_.handle(NodeDisconnected{node_id(name)}, now_);
  }
  void pass(Duration time) {
    now_ += time;
    effects_ = job_.on_time(now_);
  }
  // Time in which the named ones are heard, each with what it said last.
  template <typename Alive>
  void pass(Duration time, Alive&& keep_alive) {
    for (Duration left = time; left > Duration{}; left -= seconds(1)) {
      keep_alive();
      pass(std::min<Duration>(left, seconds(1)));
    }
  }

  [[nodiscard]] Order order(const std::string& name) const {
    return job_.order_for(node_id(name), now_);
  }
  template <typename T>
  [[nodiscard]] bool is_told(const std::string& name) const {
    return std::holds_alternative<T>(order(name));
  }
  template <typename T>
  [[nodiscard]] T told(const std::string& name) const {
    return std::get<T>(order(name));
  }
  // Remembers the round that this node is ordered to run.
  Placement run(const std::string& name) {
    const Placement placement = told<Run>(name).placement;
    round_ = placement.round;
    return placement;
  }

  [[nodiscard]] Job& job() { return job_; }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] RoundId round() const { return *round_; }
  [[nodiscard]] const JobEffects& effects() const { return effects_; }

 private:
  std::string refusal(JobEffects effects) {
    effects_ = std::move(effects);
    for (const JobEffect& effect : effects_) {
      if (const auto* refused = std::get_if<RefuseNode>(&effect)) return refused->refuse.reason;
    }
    return {};
  }

  Instant now_ = Instant{} + seconds(100);
  NodeLimits limits_;
  std::int32_t max_restarts_;
  bool notify_;
  Job job_;
  std::optional<RoundId> round_;
  JobEffects effects_;
};

}  // namespace ddp::rendezvous::test
