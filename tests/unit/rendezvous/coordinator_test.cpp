#include "rendezvous/core/coordinator.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/rendezvous/job_scene.h"

namespace ddp::rendezvous::test {
namespace {

class Scene {
 public:
  explicit Scene(CoordinatorSetup setup = {}) : machine_(std::move(setup)) {}

  void open(std::uint64_t session, bool local = false) {
    handle(SessionOpened{{session}, "192.0.2." + std::to_string(session), local});
  }
  void close(std::uint64_t session) { handle(SessionClosed{{session}}); }
  void receive(std::uint64_t session, Message message) {
    handle(MessageReceived{{session}, std::move(message)});
  }
  void hello(std::uint64_t session, const NodeDescription& node, const std::string& job = "job") {
    Hello hello;
    hello.job = job;
    hello.node = node;
    receive(session, hello);
  }
  // Opens the session, says hello and that nothing runs.
  void arrive(std::uint64_t session, const std::string& name, NodeLimits limits = {2, 2}) {
    open(session);
    hello(session, description(name, limits));
    receive(session, StatusMessage{++sequence_, status_of(NodePhase::idle)});
  }
  void pass(Duration time) {
    wait(time);
    take(machine_.on_time(now_));
  }
  // The timer is late.
  void wait(Duration time) { now_ += time; }

  // What the last event sent to that session.
  template <typename T>
  [[nodiscard]] std::vector<T> sent(std::uint64_t session) const {
    std::vector<T> messages;
    for (const CoordinatorEffect& effect : effects_) {
      const auto* send = std::get_if<SendMessage>(&effect);
      if (send == nullptr || send->session.value != session) continue;
      if (const auto* message = std::get_if<T>(&send->message)) messages.push_back(*message);
    }
    return messages;
  }
  template <typename T>
  [[nodiscard]] bool ordered(std::uint64_t session) const {
    const auto orders = sent<OrderMessage>(session);
    return !orders.empty() && std::holds_alternative<T>(orders.back().order);
  }
  [[nodiscard]] bool closed(std::uint64_t session) const {
    for (const CoordinatorEffect& effect : effects_) {
      const auto* close = std::get_if<CloseSession>(&effect);
      if (close != nullptr && close->session.value == session) return true;
    }
    return false;
  }
  [[nodiscard]] std::string refusal(std::uint64_t session) const {
    const auto refusals = sent<RefuseMessage>(session);
    return refusals.empty() || !closed(session) ? std::string() : refusals.front().reason;
  }
  [[nodiscard]] std::vector<std::string> refusals_said() const {
    std::vector<std::string> reasons;
    for (const CoordinatorEffect& effect : effects_) {
      if (const auto* refused = std::get_if<NodeRefused>(&effect)) {
        reasons.push_back(refused->reason);
      }
    }
    return reasons;
  }
  [[nodiscard]] std::int64_t next_sequence() { return ++sequence_; }
  [[nodiscard]] const Coordinator& machine() const { return machine_; }
  [[nodiscard]] Instant now() const { return now_; }

 private:
  void handle(const CoordinatorEvent& event) { take(machine_.handle(event, now_)); }
  void take(CoordinatorEffects effects) { effects_ = std::move(effects); }

  Coordinator machine_;
  Instant now_ = Instant{} + seconds(100);
  CoordinatorEffects effects_;
  std::int64_t sequence_ = 0;
};

}  // namespace

TEST_CASE("coordinator: a hello is answered with a welcome and the order that holds") {
  CoordinatorSetup setup;
  setup.embedded = true;
  Scene scene(setup);
  scene.open(1);
  scene.hello(1, description("a"));
  CHECK(scene.sent<Welcome>(1) == std::vector<Welcome>{Welcome{1, true, seconds(1), seconds(5)}});
  CHECK(scene.ordered<Wait>(1));
}

TEST_CASE("coordinator: each status is answered, and changed orders are sent unasked") {
  Scene scene;
  scene.arrive(1, "a");
  CHECK(scene.sent<OrderMessage>(1).size() == 1);
  scene.arrive(2, "b");
  CHECK(scene.ordered<Run>(1));
  CHECK(scene.ordered<Run>(2));
  scene.receive(2, StatusMessage{scene.next_sequence(), status_of(NodePhase::idle)});
  CHECK(scene.ordered<Run>(2));
  CHECK(scene.sent<OrderMessage>(1).empty());
}

TEST_CASE("coordinator: an older status changes nothing, and is answered with what holds") {
  Scene scene;
  scene.open(1);
  scene.hello(1, description("a", {1, 1}));
  scene.receive(1, StatusMessage{5, status_of(NodePhase::idle)});
  REQUIRE(scene.ordered<Run>(1));
  CHECK(scene.sent<OrderMessage>(1).back().sequence == 5);
  NodeStatus failed = status_of(NodePhase::failed);
  failed.failure = interruption(2);
  for (const std::int64_t old : {4, 5}) {
    scene.receive(1, StatusMessage{old, failed});
    CHECK(scene.sent<OrderMessage>(1).size() == 1);
    REQUIRE(scene.ordered<Run>(1));
    CHECK(scene.sent<OrderMessage>(1).back().sequence == 5);
  }
}

TEST_CASE("coordinator: whoever borrows a node's name leaves nothing that harms it") {
  Scene scene;
  scene.open(1);
  scene.hello(1, description("a", {1, 1}));
  scene.receive(1, StatusMessage{1, status_of(NodePhase::idle)});
  scene.open(2);
  scene.hello(2, description("a", {1, 1}));
  scene.receive(2, StatusMessage{std::int64_t{1} << 40, status_of(NodePhase::idle)});
  scene.open(3);
  scene.hello(3, description("a", {1, 1}));
  scene.receive(3, StatusMessage{2, status_of(NodePhase::running)});
  CHECK(scene.sent<OrderMessage>(3).back().sequence == 2);
}

TEST_CASE("coordinator: nobody from outside takes the name of the node beside it") {
  Scene scene;
  scene.open(1, true);
  scene.hello(1, description("a"));
  scene.open(2);
  scene.hello(2, description("a"));
  CHECK(scene.refusal(2) ==
        "host a calls itself the node that runs this coordinator; it must have an id of its own");
  CHECK_FALSE(scene.closed(1));
}

TEST_CASE("coordinator: a node that comes back on a new connection replaces the old one") {
  Scene scene;
  scene.arrive(1, "a");
  scene.open(2);
  scene.hello(2, description("a"));
  CHECK(scene.closed(1));
  CHECK(scene.ordered<Wait>(2));
  scene.close(1);  // heard of late
  scene.pass(seconds(2));
  scene.arrive(3, "b");
  CHECK(scene.ordered<Run>(2));
}

TEST_CASE("coordinator: who waits for a node that was refused is told why, once") {
  Scene scene;
  scene.arrive(1, "a");
  for (const std::uint64_t session : {2, 3}) {
    scene.open(session);
    scene.hello(session, description("b", {3, 3}));
    CHECK(scene.refusals_said() ==
          (session == 2 ? std::vector<std::string>{scene.refusal(2)} : std::vector<std::string>{}));
    CHECK_FALSE(scene.refusal(session).empty());
  }
}

TEST_CASE("coordinator: jobs do not meet") {
  Scene scene;
  scene.arrive(1, "a");
  scene.open(2);
  scene.hello(2, description("b", {1, 1}, 9), "another");
  scene.receive(2, StatusMessage{scene.next_sequence(), status_of(NodePhase::idle)});
  CHECK(scene.ordered<Run>(2));
  CHECK(scene.sent<OrderMessage>(1).empty());
}

TEST_CASE("coordinator: who cannot take part is refused in one line and closed") {
  Scene scene;
  scene.open(1);
  SECTION("a version that is not spoken here") {
    Hello hello;
    hello.min_version = 2;
    hello.max_version = 3;
    hello.node = description("a");
    scene.receive(1, hello);
    CHECK(scene.refusal(1) ==
          "host a speaks version 2 to 3 of the agent protocol, this coordinator 1; install the "
          "same ddplaunch on every node");
  }
  SECTION("limits out of range") {
    scene.hello(1, description("a", {1, 32'767}));
    CHECK(scene.refusal(1).empty());
    scene.open(2);
    scene.hello(2, description("b", {1, 32'768}), "other");
    CHECK(scene.refusal(2) == "host b says --nnodes 1:32768, which is not within 1 to 32767");
  }
  SECTION("workers out of range") {
    NodeDescription node = description("a");
    node.workers = 65'536;
    scene.hello(1, node);
    CHECK(scene.refusal(1).empty());
    node.workers = 65'537;
    scene.open(2);
    scene.hello(2, node);
    CHECK(scene.refusal(2) == "host a says --nproc-per-node 65537, which is not within 1 to 65536");
  }
}

TEST_CASE("coordinator: an embedded one serves the job of its own agent only") {
  CoordinatorSetup setup;
  setup.embedded = true;
  Scene scene(setup);
  scene.open(1, true);
  scene.hello(1, description("a"), "mine");
  scene.open(2);
  scene.hello(2, description("b"), "yours");
  CHECK(scene.refusal(2) ==
        "this coordinator serves job 'mine', host b wants to join job 'yours'; use the same "
        "--rdzv-id on every node, or another port for another job");
}

TEST_CASE("coordinator: a refused node leaves no job behind that others would be measured by") {
  Scene scene;
  NodeDescription wrong = description("a", {1, 1});
  wrong.node_rank = 7;
  scene.open(1);
  scene.hello(1, wrong);
  REQUIRE_FALSE(scene.refusal(1).empty());
  scene.open(2);
  scene.hello(2, description("b", {2, 2}));
  CHECK(scene.ordered<Wait>(2));
}

TEST_CASE("coordinator: what came to light while a node was refused is done all the same") {
  Scene scene;
  scene.arrive(1, "a");
  scene.arrive(2, "b");
  REQUIRE(scene.ordered<Run>(2));
  scene.pass(seconds(4));
  scene.receive(1, StatusMessage{scene.next_sequence(), status_of(NodePhase::idle)});
  scene.pass(seconds(1));  // b is overdue, and looked at again 200 ms later
  scene.wait(milliseconds(200));
  scene.open(3);
  scene.hello(3, description("c", {3, 3}));
  CHECK_FALSE(scene.refusal(3).empty());
  CHECK(scene.closed(2));
  CHECK(scene.ordered<Stop>(1));
}

TEST_CASE("coordinator: a refused borrower of a node's name does not cost the node its session") {
  Scene scene;
  scene.arrive(1, "a");
  scene.open(2);
  scene.hello(2, description("a", {3, 3}));
  CHECK_FALSE(scene.refusal(2).empty());
  CHECK_FALSE(scene.closed(1));
}

TEST_CASE("coordinator: a connection that says no hello within 5 s is closed") {
  Scene scene;
  scene.open(1);
  CHECK(scene.machine().next_deadline() == scene.now() + seconds(5));
  scene.pass(milliseconds(4999));
  CHECK_FALSE(scene.closed(1));
  scene.pass(milliseconds(1));
  CHECK(scene.closed(1));
  CHECK_FALSE(scene.machine().next_deadline().has_value());
}

TEST_CASE("coordinator: talk out of turn costs the connection and nothing else") {
  Scene scene;
  scene.arrive(1, "a");
  scene.open(2);
  scene.receive(2, StatusMessage{1, status_of(NodePhase::idle)});
  CHECK(scene.closed(2));
  scene.hello(1, description("a"));
  CHECK(scene.closed(1));
  scene.arrive(3, "a");
  scene.arrive(4, "b");
  CHECK(scene.ordered<Run>(3));
}

}  // namespace ddp::rendezvous::test
