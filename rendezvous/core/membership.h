// The words all three houses share: who a node is, which round it is in, where it is placed, what
// it is told.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/time.h"

namespace ddp::rendezvous {

// A strong integer: Rank{3} and Port{3} do not mix.
template <typename Tag, typename Value>
struct Strong {
  Value value{};
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;
};

using Rank = Strong<struct RankTag, std::int32_t>;            // of a worker, in the whole round
using LocalRank = Strong<struct LocalRankTag, std::int32_t>;  // of a worker, on its node
using GroupRank = Strong<struct GroupRankTag, std::int32_t>;  // of a node, in the round
using Port = Strong<struct PortTag, std::uint16_t>;

struct Endpoint {
  std::string host;
  Port port;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// For people.
[[nodiscard]] inline std::string text_of(const Endpoint& endpoint) {
  const bool literal_v6 = endpoint.host.find(':') != std::string::npos;
  return (literal_v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
         std::to_string(endpoint.port.value);
}

// A round's number alone could be issued twice, by a coordinator that was restarted; the pair
// cannot.
struct RoundId {
  std::uint64_t number = 0;
  std::uint64_t nonce = 0;
  friend constexpr auto operator<=>(const RoundId&, const RoundId&) = default;
};

// One life of one agent: a restarted agent on the same host is another node.
struct NodeId {
  std::string value;  // 32 hexadecimal digits
  friend auto operator<=>(const NodeId&, const NodeId&) = default;
};

// Together they keep every rank within 31 bits.
inline constexpr std::int32_t kMaxWorkers = 65'536;  // on one node
inline constexpr std::int32_t kMaxNodes = 32'767;

// How many nodes a job runs on.
struct NodeLimits {
  std::int32_t min = 1;
  std::int32_t max = 1;
  friend bool operator==(const NodeLimits&, const NodeLimits&) = default;
};

enum class FailureKind : std::uint8_t {
  worker_exited,    // a worker ended with a code other than 0
  worker_signaled,  // a worker was killed by a signal
  spawn_failed,     // a worker's program could not be started: code is 126 or 127
  interrupted,      // an agent was told to stop (signal): nothing failed, but the job ends
  node_lost,        // an agent's connection or heartbeat went away
  launcher_failed,  // an agent could not do its own part (for example open the worker store)
};

// The first thing that went wrong on a node in a round. Numbers are -1 where they do not apply.
struct Failure {
  FailureKind kind = FailureKind::worker_exited;
  std::int32_t rank = -1;
  std::int32_t local_rank = -1;
  std::int64_t pid = -1;
  std::string host;
  std::int32_t exit_code = -1;  // worker_exited, spawn_failed
  std::int32_t signal = 0;      // worker_signaled, interrupted
  bool core_dumped = false;
  Duration age{};       // how long before this was sent it happened, by the sender's clock
  std::string message;  // from the worker's error file, or one sentence of ours

  // What else is known of a worker's death.
  bool secondary = false;                // by its own words it died because it lost a peer
  Duration ran_for{};                    // from its start to its end; 0: not known
  bool oom_killed = false;               // the kernel counts a kill for want of memory
  std::string oom_counter;               // where it counts: "cgroup /x"; empty: not looked at
  std::int64_t peak_memory = -1;         // bytes, the most that was resident
  std::string last_output;               // its last lines of stderr, as they were
  std::vector<std::int32_t> tied_ranks;  // whose deaths can't be told to be later than this one
  friend bool operator==(const Failure&, const Failure&) = default;
};

enum class NodePhase : std::uint8_t {
  idle,       // no workers, in no round
  placed,     // knows its place in `round`; workers not started yet
  running,    // workers of `round` run, except those that were lost, see `loss`
  failed,     // a worker of `round` failed, see `failure`; the rest is being stopped
  succeeded,  // every worker of `round` exited with 0, or was lost
  stopping,   // workers of `round` are being stopped because we were told to
  stopped,    // nothing of `round` is left alive on this node
};

// What a node says of itself, again and again (level-triggered): the newest one holds.
struct NodeStatus {
  NodePhase phase = NodePhase::idle;
  std::optional<RoundId> round;   // the round that the node believes it is in
  std::optional<Endpoint> store;  // from group rank 0: where the round's worker store listens
  std::optional<Failure>
      failure;  // first failure here in `round`; kind interrupted: also without a round
  std::optional<Failure> loss;  // first worker lost here in `round` while the others may go on
  std::int32_t lost_workers = 0;
  bool verdict_acknowledged = false;  // has seen Close, and nothing of the job is left alive here
  friend bool operator==(const NodeStatus&, const NodeStatus&) = default;
};

// What a node says once, when it joins.
struct NodeDescription {
  NodeId id;
  std::string host;          // for people: messages name it
  std::string address;       // where others reach this node; empty: as the coordinator sees it
  std::int32_t workers = 1;  // local world size; may differ per node
  std::string role = "default";
  NodeLimits limits;                      // every node of a job must say the same
  std::int32_t max_restarts = 0;          // likewise
  std::optional<std::int32_t> node_rank;  // fixed place, as --node-rank
  Duration restart_delay{};               // longest pause before a restart; 0: never any
  bool notify = false;                    // the others live on where a worker or a node is lost
  friend bool operator==(const NodeDescription&, const NodeDescription&) = default;
};

// A node's place in a round: O(1) bytes, whatever the size of the job.
struct Placement {
  RoundId round;
  GroupRank group_rank;
  std::int32_t group_world_size = 1;
  Rank first_rank;
  std::int32_t world_size = 1;
  Rank role_first_rank;
  std::int32_t role_world_size = 1;
  std::int32_t restart_count = 0;
  std::int32_t max_restarts = 0;
  std::optional<Endpoint> master;  // absent until group rank 0 has opened the round's store
  friend bool operator==(const Placement&, const Placement&) = default;
};

// How the job ended. Held by every agent; once held it is binding.
struct Verdict {
  std::int32_t exit_code = 0;
  std::string reason;              // one sentence
  std::optional<Failure> failure;  // first cause, if any
  std::int32_t restarts_used = 0;
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// The orders: what a node is told, again and again. Each carries its reason where there is one.
struct Wait {
  std::string reason;                 // "1 of 2 nodes: waiting for 1 more"
  std::optional<Duration> remaining;  // until the coordinator gives up, or goes on
  bool pausing = false;               // nobody is missing: it goes on
  friend bool operator==(const Wait&, const Wait&) = default;
};
struct Run {
  Placement placement;
  std::optional<Failure> loss = {};  // the first one in this round that the others may survive
  friend bool operator==(const Run&, const Run&) = default;
};
struct Stop {
  RoundId round;
  std::string reason;
  std::optional<Failure> cause;
  friend bool operator==(const Stop&, const Stop&) = default;
};
struct Close {  // stop what runs, then acknowledge
  Verdict verdict;
  friend bool operator==(const Close&, const Close&) = default;
};
struct Leave {  // everybody has acknowledged: exit
  Verdict verdict;
  friend bool operator==(const Leave&, const Leave&) = default;
};
struct Refuse {  // this node may not take part
  std::int32_t exit_code = 0;
  std::string reason;
  friend bool operator==(const Refuse&, const Refuse&) = default;
};

using Order = std::variant<Wait, Run, Stop, Close, Leave, Refuse>;

// Exit codes of our own, beside the first cause's (README, "Exit codes").
namespace exit_code {
inline constexpr std::int32_t kLauncherFailed = 1;
inline constexpr std::int32_t kUsage = 2;
inline constexpr std::int32_t kRendezvousTimeout = 120;
inline constexpr std::int32_t kRefused = 121;
inline constexpr std::int32_t kCoordinatorLost = 122;
inline constexpr std::int32_t kNodeLost = 123;
inline constexpr std::int32_t kNotExecutable = 126;
inline constexpr std::int32_t kNotFound = 127;
inline constexpr std::int32_t kSignalBase = 128;
}  // namespace exit_code

}  // namespace ddp::rendezvous
