// What the status line of a terminal says while the agent waits for something.
#include <catch2/catch.hpp>
#include <csignal>
#include <string>

#include "launcher/core/agent.h"

namespace {

using namespace ddp::launcher;
namespace rendezvous = ddp::rendezvous;
using std::chrono::milliseconds;
using std::chrono::seconds;

const RoundId kRound{1, 7};
const Instant kStart{seconds(1000)};

// An agent with workers of `count` ranks from `first_rank` on.
struct Node {
  explicit Node(std::int32_t count, std::int32_t first_rank = 0, std::int32_t nodes = 1)
      : agent(config(count), "host", {"id"}, {}) {
    placement.round = kRound;
    placement.group_world_size = nodes;
    placement.first_rank = {first_rank};
    placement.world_size = count * nodes;
  }
  static LaunchConfig config(std::int32_t count) {
    LaunchConfig config;
    config.program = "true";
    config.workers = count;
    config.shutdown_timeout = seconds(30);
    return config;
  }
  void happens(const AgentEvent& event) { (void)agent.handle(event, now); }
  void is_placed() { happens(OrderReceived{rendezvous::Run{placement}}); }
  void runs() {
    is_placed();
    happens(StoreOpened{kRound, {"127.0.0.1", {1}}});
    placement.master = Endpoint{"127.0.0.1", {1}};
    is_placed();
    WorkersSpawned spawned{kRound, {}};
    for (std::int32_t i = 0; i < count(); ++i) spawned.pids.push_back(100 + i);
    happens(spawned);
  }
  [[nodiscard]] std::int32_t count() const {
    return placement.world_size / placement.group_world_size;
  }
  void exits(std::int32_t local_rank, std::int32_t code = 0) {
    happens(WorkersExited{kRound, {{{local_rank}, code}}});
  }
  [[nodiscard]] std::string line() const { return agent.status_line(now); }

  Agent agent;
  Placement placement;
  Instant now = kStart;
};

}  // namespace

TEST_CASE("status line: nothing is said while nothing is waited for") {
  Node node(8);
  CHECK(node.line().empty());
  node.runs();
  CHECK(node.line().empty());
}

TEST_CASE("status line: what a launch waits for, and how long still") {
  Node node(8);
  node.happens(OrderReceived{rendezvous::Wait{"1 of 2 nodes: waiting for 1 more", seconds(600)}});
  CHECK(node.line() == "1 of 2 nodes: waiting for 1 more (at most 600 s)");
  node.now += milliseconds(1500);
  CHECK(node.line() == "1 of 2 nodes: waiting for 1 more (at most 599 s)");
  node.is_placed();
  CHECK(node.line() == "starting 8 workers");
}

TEST_CASE("status line: a worker that ends early is named, or those who still run") {
  Node node(8, 4);
  node.runs();
  node.exits(0);
  CHECK(node.line() == "rank 4 has ended 0 s ago; 7 of 8 workers still run");
  node.now += seconds(12);
  node.exits(3);
  node.now += seconds(3);
  CHECK(node.line() == "ranks 4, 7 have ended, the last one 3 s ago; 6 of 8 workers still run");
  node.exits(1);
  node.exits(2);
  node.exits(5);
  CHECK(node.line() == "ranks 8, 10-11 still run; 5 of 8 workers have ended, the last one 0 s ago");
  node.exits(6);
  node.exits(7);
  node.now += seconds(180);
  CHECK(node.line() == "rank 8 still runs; 7 of 8 workers have ended, the last one 3 min ago");
}

TEST_CASE("status line: of many ranks that are not in a row only some are named") {
  Node node(40);
  node.runs();
  for (std::int32_t rank = 0; rank < 40; rank += 2) node.exits(rank);
  CHECK(
      node.line() ==
      "ranks 0, 2, 4, 6, 8, 10, ... have ended, the last one 0 s ago; 20 of 40 workers still run");
}

TEST_CASE("status line: who is left while workers are stopped, and until when") {
  Node node(3);
  node.runs();
  node.exits(1, 7);
  CHECK(node.line() == "stopping: 2 of 3 workers are left, SIGKILL in 30 s");
  node.now += milliseconds(18500);
  node.exits(0);
  CHECK(node.line() == "stopping: 1 of 3 workers is left, SIGKILL in 12 s");
  node.now += seconds(12);
  (void)node.agent.on_time(node.now);
  CHECK(node.line() == "stopping: 1 of 3 workers is left after SIGKILL, given up in 10 s");
  node.exits(2, 137);
  CHECK(node.line() == "ending what workers left behind");
  node.happens(RemainsGone{kRound});
  CHECK(node.line().empty());
}

TEST_CASE("status line: how long until the next round, and which restart it will be") {
  Node node(1);
  node.placement.restart_count = 1;
  node.placement.max_restarts = 5;
  node.runs();
  node.exits(0, 3);
  node.happens(RemainsGone{kRound});
  node.happens(OrderReceived{rendezvous::Wait{"after a pause", milliseconds(1400), true}});
  CHECK(node.line() == "restarting in 2 s (restart 2 of 5)");
}

TEST_CASE("status line: suspended, and again what it was") {
  Node node(2);
  node.runs();
  node.exits(0);
  node.happens(SignalReceived{SIGTSTP});
  CHECK(node.line() == "suspended");
  node.happens(SignalReceived{SIGCONT});
  CHECK(node.line() == "rank 0 has ended 0 s ago; 1 of 2 workers still runs");
}

TEST_CASE("status line: after the last worker") {
  Node node(1, 0, 2);
  node.runs();
  node.exits(0);
  CHECK(node.line() == "all workers of this node have ended, other nodes still run");
  node.happens(OrderReceived{rendezvous::Close{}});
  CHECK(node.line() == "ending what workers left behind");
  node.happens(RemainsGone{kRound});
  CHECK(node.line() == "waiting for the coordinator's last word");
  node.happens(OrderReceived{rendezvous::Leave{}});
  CHECK(node.line().empty());
}
