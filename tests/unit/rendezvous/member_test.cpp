#include "rendezvous/core/member.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/rendezvous/job_scene.h"

namespace ddp::rendezvous::test {
namespace {

MemberSetup setup() {
  MemberSetup setup;
  setup.run_id = "job";
  setup.node = description("a");
  setup.coordinator = "head:29500";
  return setup;
}

// A member whose coordinator does what the test says.
class Scene {
 public:
  Scene() { take(machine_.on_time(now_)); }

  void handle(const MemberEvent& event) { take(machine_.handle(event, now_)); }
  void receive(Message message) { handle(MessageArrived{connection_, std::move(message)}); }
  void fail(const std::string& why = "Connection refused") {
    handle(ConnectionFailed{connection_, why});
  }
  void join(bool embedded = false) {
    handle(Connected{connection_});
    receive(Welcome{1, embedded, seconds(1), seconds(5)});
  }
  void pass(Duration time) {
    now_ += time;
    take(machine_.on_time(now_));
  }
  // Every deadline until then is met, as a timer would.
  void run_until(Instant until) {
    while (machine_.next_deadline() && *machine_.next_deadline() <= until) {
      now_ = std::max(now_, *machine_.next_deadline());
      take(machine_.on_time(now_));
      if (refusing && last<Connect>()) fail();
    }
    now_ = until;
  }

  template <typename T>
  [[nodiscard]] std::optional<T> last() const {
    for (auto effect = effects_.rbegin(); effect != effects_.rend(); ++effect) {
      if (const auto* wanted = std::get_if<T>(&*effect)) return *wanted;
    }
    return std::nullopt;
  }
  template <typename T>
  [[nodiscard]] std::optional<T> sent() const {
    const auto send = last<Send>();
    if (!send || !std::holds_alternative<T>(send->message)) return std::nullopt;
    return std::get<T>(send->message);
  }
  [[nodiscard]] ConnectionId connection() const { return connection_; }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] Member& machine() { return machine_; }

  bool refusing = false;  // each attempt to connect fails at once

 private:
  void take(MemberEffects effects) {
    effects_ = std::move(effects);
    if (const auto connect = last<Connect>()) connection_ = connect->connection;
  }

  Member machine_{setup()};
  Instant now_ = Instant{} + seconds(100);
  MemberEffects effects_;
  ConnectionId connection_;
};

const Verdict kVerdict{7, "a worker failed", {}, 0};

}  // namespace

TEST_CASE("member: connects, says who it is, and once welcome tells what holds") {
  Scene scene;
  REQUIRE(scene.last<Connect>());
  NodeStatus status = status_of(NodePhase::running, RoundId{1, 2});
  scene.handle(StatusChanged{status});
  CHECK_FALSE(scene.last<Send>());
  scene.handle(Connected{scene.connection()});
  CHECK(scene.sent<Hello>()->node == description("a"));
  scene.receive(Welcome{});
  CHECK(scene.sent<StatusMessage>() == StatusMessage{1, status});
}

TEST_CASE("member: a change is told at once, and everything again with each heartbeat") {
  Scene scene;
  scene.join();
  scene.handle(StatusChanged{status_of(NodePhase::placed)});
  CHECK(scene.sent<StatusMessage>()->sequence == 2);
  CHECK(scene.machine().next_deadline() == scene.now() + seconds(1));
  scene.pass(seconds(1));
  CHECK(scene.sent<StatusMessage>() == StatusMessage{3, status_of(NodePhase::placed)});
}

TEST_CASE("member: a failure that is told again has grown older") {
  Scene scene;
  scene.join();
  NodeStatus status = status_of(NodePhase::failed);
  status.failure = worker_failure(7);
  status.failure->age = milliseconds(10);
  scene.handle(StatusChanged{status});
  CHECK(scene.sent<StatusMessage>()->status.failure->age == milliseconds(10));
  scene.pass(seconds(1));
  CHECK(scene.sent<StatusMessage>()->status.failure->age == milliseconds(1010));
}

TEST_CASE("member: every order is delivered, repeated ones too") {
  Scene scene;
  scene.join();
  for (int i = 0; i < 2; ++i) {
    scene.receive(OrderMessage{1, Wait{"for b", {}}});
    CHECK(scene.last<DeliverOrder>()->order == Order(Wait{"for b", {}}));
  }
}

TEST_CASE("member: words of an earlier connection are not heard") {
  Scene scene;
  scene.join();
  scene.handle(MessageArrived{ConnectionId{99}, OrderMessage{1, Leave{kVerdict}}});
  CHECK_FALSE(scene.last<DeliverOrder>());
  scene.handle(ConnectionFailed{ConnectionId{99}, "reset"});
  scene.handle(StatusChanged{status_of(NodePhase::placed)});
  CHECK(scene.sent<StatusMessage>());
}

TEST_CASE("member: without an answer for the timeout it connects anew, and the numbers go on") {
  Scene scene;
  scene.join();
  for (int i = 0; i < 4; ++i) scene.pass(seconds(1));
  CHECK_FALSE(scene.last<Disconnect>());
  scene.pass(seconds(1));
  CHECK(scene.last<Disconnect>());
  scene.run_until(scene.now() + milliseconds(100));
  REQUIRE(scene.last<Connect>());
  scene.join();
  CHECK(scene.sent<StatusMessage>()->sequence == 6);
}

TEST_CASE("member: pauses between attempts grow to half a second, which is within the grace") {
  Scene scene;
  Duration longest{};
  for (int i = 0; i < 20; ++i) {
    const Instant before = scene.now();
    scene.fail();
    REQUIRE(scene.machine().next_deadline());
    scene.run_until(*scene.machine().next_deadline());
    REQUIRE(scene.last<Connect>());
    longest = std::max(longest, scene.now() - before);
  }
  CHECK(longest > milliseconds(250));
  CHECK(longest <= milliseconds(500));
}

TEST_CASE("member: gives up a coordinator that it never reached after 60 s, and says why") {
  Scene scene;
  scene.refusing = true;
  scene.fail();
  const Instant start = scene.now();
  scene.run_until(start + milliseconds(59'999));
  CHECK_FALSE(scene.last<GiveUp>());
  scene.run_until(start + seconds(60));
  REQUIRE(scene.last<GiveUp>());
  CHECK(scene.last<GiveUp>()->exit_code == exit_code::kCoordinatorLost);
  CHECK(scene.last<GiveUp>()->reason ==
        "cannot reach a coordinator at head:29500 for 60 s (Connection refused); is ddplaunch "
        "running there, and is this its address?");
  CHECK_FALSE(scene.machine().next_deadline());
}

TEST_CASE("member: an embedded coordinator that is gone is given up after 5 s") {
  Scene scene;
  scene.join(true);
  scene.refusing = true;
  const Instant start = scene.now();
  scene.fail("the other side closed the connection");
  scene.run_until(start + milliseconds(4999));
  CHECK_FALSE(scene.last<GiveUp>());
  scene.run_until(start + seconds(5));
  CHECK(scene.last<GiveUp>());
}

TEST_CASE("member: with the verdict in hand it leaves by itself, but only when all is gone here") {
  Scene scene;
  scene.join(true);
  scene.receive(OrderMessage{1, Close{kVerdict}});
  scene.refusing = true;
  scene.fail("the other side closed the connection");
  scene.run_until(scene.now() + seconds(30));
  CHECK_FALSE(scene.last<GiveUp>());
  CHECK_FALSE(scene.last<DeliverOrder>());
  NodeStatus status = status_of(NodePhase::stopped);
  status.verdict_acknowledged = true;
  scene.handle(StatusChanged{status});
  REQUIRE(scene.last<DeliverOrder>());
  CHECK(scene.last<DeliverOrder>()->order == Order(Leave{kVerdict}));
}

TEST_CASE("member: told to leave, or refused, it does no more") {
  Scene scene;
  const bool refused = GENERATE(false, true);
  scene.join();
  if (refused) {
    scene.receive(RefuseMessage{121, "no"});
    CHECK(scene.last<DeliverOrder>()->order == Order(Refuse{121, "no"}));
  } else {
    scene.receive(OrderMessage{1, Leave{kVerdict}});
    CHECK(scene.last<DeliverOrder>()->order == Order(Leave{kVerdict}));
  }
  CHECK(scene.last<Disconnect>());
  CHECK_FALSE(scene.machine().next_deadline());
  scene.handle(StatusChanged{status_of(NodePhase::stopped)});
  CHECK_FALSE(scene.last<Send>());
}

TEST_CASE("member: one that was paused for minutes tries to come back before it gives up") {
  Scene scene;
  scene.join(true);
  scene.pass(seconds(300));
  CHECK_FALSE(scene.last<GiveUp>());
  CHECK(scene.sent<StatusMessage>());
}

}  // namespace ddp::rendezvous::test
