#include "rendezvous/core/job.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rendezvous/job_scene.h"

namespace ddp::rendezvous::test {
namespace {

// Two nodes in their first round.
JobScene running(std::int32_t max_restarts = 1) {
  JobScene scene({2, 2}, max_restarts);
  scene.arrive("a");
  scene.arrive("b");
  scene.run("a");
  scene.report("a", NodePhase::running);
  scene.report("b", NodePhase::running);
  return scene;
}

bool changed(const JobScene& scene) {
  for (const JobEffect& effect : scene.effects()) {
    if (std::holds_alternative<OrdersChanged>(effect)) return true;
  }
  return false;
}

}  // namespace

// ---- forming ---------------------------------------------------------------------------------

TEST_CASE("job: nodes wait, and are told for what and how long, until enough are there") {
  JobScene scene;
  scene.arrive("a");
  CHECK(scene.told<Wait>("a").reason == "1 of 2 nodes: waiting for 1 more");
  CHECK(scene.told<Wait>("a").remaining == Duration(seconds(600)));
  scene.pass(seconds(2));
  CHECK(scene.told<Wait>("a").remaining == Duration(seconds(598)));
  scene.arrive("b");
  CHECK(scene.run("a").group_rank == GroupRank{0});
  CHECK(scene.run("b").group_rank == GroupRank{1});
  CHECK(scene.run("b").round.number == 1);
  CHECK(changed(scene));
}

TEST_CASE("job: a node counts once it has said that nothing runs on it") {
  JobScene scene;
  scene.arrive("a");
  scene.join(description("b"));
  CHECK(scene.is_told<Wait>("a"));
  const RoundId other{9, 9};
  scene.report("b", status_of(NodePhase::running, other));
  CHECK(scene.told<Stop>("b").round == other);
  CHECK(scene.told<Wait>("a").reason == "1 of 2 nodes: waiting for b to stop its workers");
  scene.report("b", status_of(NodePhase::stopped, other));
  CHECK(scene.is_told<Run>("a"));
}

TEST_CASE("job: above the minimum there is a last call") {
  JobScene scene({1, 3});
  scene.arrive("a");
  CHECK(scene.told<Wait>("a").reason == "1 of 1 to 3 nodes: last call for 2 more");
  const auto heard = [&] { scene.report("a", status_of(NodePhase::idle)); };
  SECTION("that ends after 30 s") {
    scene.pass(seconds(29), heard);
    CHECK(scene.is_told<Wait>("a"));
    scene.pass(seconds(1), heard);
    CHECK(scene.run("a").group_world_size == 1);
  }
  SECTION("or when the maximum is there") {
    scene.arrive("b");
    CHECK(scene.is_told<Wait>("a"));
    scene.arrive("c");
    CHECK(scene.run("a").group_world_size == 3);
  }
}

TEST_CASE("job: who comes when all places are taken waits for one") {
  JobScene scene({1, 1});
  scene.arrive("a");
  scene.arrive("b");
  CHECK(scene.is_told<Run>("a"));
  CHECK(scene.told<Wait>("b").reason == "the job runs on 1 other nodes: waiting for a place");
}

TEST_CASE("job: the join timeout ends it and says who came, and from where") {
  JobScene scene({3, 3});
  scene.arrive("1");
  NodeDescription second = description("2", {3, 3});
  second.node_rank = 2;
  scene.join(second);
  const auto heard = [&] {
    scene.report("1", status_of(NodePhase::idle));
    scene.report("2", status_of(NodePhase::idle));
  };
  scene.pass(seconds(599), heard);
  CHECK(scene.is_told<Wait>("1"));
  scene.pass(seconds(1), heard);
  const Verdict verdict = scene.told<Close>("1").verdict;
  CHECK(verdict.exit_code == exit_code::kRendezvousTimeout);
  CHECK(
      verdict.reason ==
      "2 of 3 nodes were there within 600 s: host 1 (10.0.0.1), host 2 (10.0.0.2) as node rank 2");
}

TEST_CASE("job: mixed-up nodes are refused, with both sides named") {
  JobScene scene;
  scene.arrive("a");
  const auto refusal = [&](auto edit) {
    NodeDescription node = description("x");
    edit(node);
    return scene.join(node);
  };
  CHECK(refusal([](auto& node) {
          node.limits = {1, 2};
        }) ==
        "job 'job': it was started with --nnodes 2:2, host x says --nnodes 1:2; use the same on "
        "every node");
  CHECK(refusal([](auto& node) { node.max_restarts = 3; }) ==
        "job 'job': it was started with --max-restarts 1, host x says 3; use the same on every "
        "node");
  CHECK(refusal([](auto& node) { node.node_rank = 2; }) ==
        "job 'job': host x says --node-rank 2, but the job has 2 nodes at most, counted from 0");
  CHECK(scene.is_told<Wait>("a"));
}

TEST_CASE("job: of two nodes that claim one rank the second is refused") {
  JobScene scene;
  NodeDescription first = description("a");
  first.node_rank = 0;
  scene.join(first);
  NodeDescription second = description("b");
  second.node_rank = 0;
  SECTION("while the first is there") {
    CHECK(scene.join(second) ==
          "job 'job': --node-rank 0 is held by host a, host b claims it too; give each node its "
          "own");
  }
  SECTION("but not one that takes the place of an agent that is gone") {
    scene.disconnect("a");
    CHECK(scene.join(second).empty());
  }
}

// ---- running ---------------------------------------------------------------------------------

TEST_CASE("job: everybody is told of the store as soon as group rank 0 has opened it") {
  JobScene scene;
  scene.arrive("a");
  scene.arrive("b");
  CHECK_FALSE(scene.run("b").master.has_value());
  NodeStatus status = status_of(NodePhase::placed, scene.round());
  status.store = Endpoint{"", Port{4242}};
  scene.report("b", status);
  CHECK_FALSE(scene.run("b").master.has_value());  // not its business
  scene.report("a", status);
  CHECK(changed(scene));
  CHECK(scene.run("b").master == Endpoint{"10.0.0.a", Port{4242}});  // as the node is reached
}

TEST_CASE("job: it has succeeded when every worker has, and closes in two phases") {
  JobScene scene = running();
  scene.report("a", NodePhase::succeeded);
  CHECK(scene.is_told<Run>("a"));
  scene.report("b", NodePhase::succeeded);
  const Verdict verdict = scene.told<Close>("a").verdict;
  CHECK(verdict.exit_code == 0);

  NodeStatus acknowledged = status_of(NodePhase::stopped, scene.round());
  acknowledged.verdict_acknowledged = true;
  scene.report("a", acknowledged);
  CHECK(scene.is_told<Close>("a"));  // b does not know yet
  scene.report("b", acknowledged);
  CHECK(scene.told<Leave>("a").verdict == verdict);
  CHECK(scene.told<Leave>("b").verdict == verdict);
}

TEST_CASE("job: nobody waits for ever for a node that does not acknowledge") {
  JobScene scene = running();
  scene.report("a", NodePhase::succeeded);
  scene.report("b", NodePhase::succeeded);
  NodeStatus acknowledged = status_of(NodePhase::stopped, scene.round());
  acknowledged.verdict_acknowledged = true;
  scene.pass(seconds(60), [&] {
    CHECK(scene.is_told<Close>("a"));
    scene.report("a", acknowledged);
    scene.report("b", NodePhase::succeeded);
  });
  CHECK(scene.is_told<Leave>("a"));
  CHECK(scene.is_told<Close>("b"));
}

// ---- failure ---------------------------------------------------------------------------------

TEST_CASE("job: no new round before every node of the last one has stopped") {
  JobScene scene = running();
  scene.report("a", NodePhase::failed, worker_failure(7));
  const Stop stop = scene.told<Stop>("b");
  CHECK(stop.round == scene.round());
  CHECK(stop.cause == worker_failure(7));
  CHECK(stop.reason == "rank 0 failed on host a");
  scene.report("a", NodePhase::stopped, worker_failure(7));
  for (const NodePhase phase : {NodePhase::running, NodePhase::stopping, NodePhase::succeeded}) {
    scene.report("b", phase);
    CHECK(scene.is_told<Stop>("a"));
    CHECK(scene.is_told<Stop>("b"));
  }
  const RoundId first = scene.round();
  scene.report("b", NodePhase::stopped);
  const Placement second = scene.run("b");
  CHECK(second.round.number == first.number + 1);
  CHECK(second.round.nonce != first.nonce);
  CHECK(second.restart_count == 1);
  CHECK_FALSE(second.master.has_value());
}

TEST_CASE("job: a node that has not yet heard of the round has not stopped it") {
  JobScene scene;
  scene.arrive("a");
  scene.arrive("b");
  scene.run("a");
  scene.report("a", NodePhase::failed, worker_failure(7));
  scene.report("a", NodePhase::stopped, worker_failure(7));
  scene.report("b", status_of(NodePhase::idle));
  CHECK(scene.told<Stop>("b").round == scene.round());
  CHECK(scene.is_told<Stop>("a"));
}

TEST_CASE("job: with the budget used up the verdict is the first cause's own") {
  JobScene scene = running(0);
  scene.report("b", NodePhase::failed, worker_failure(9));
  Failure earlier = worker_failure(7);
  earlier.age = seconds(3);
  scene.pass(milliseconds(500));
  scene.report("a", NodePhase::stopped, earlier);
  scene.report("b", NodePhase::stopped, worker_failure(9));
  const Verdict verdict = scene.told<Close>("a").verdict;
  CHECK(verdict.exit_code == 9);  // nothing happened before the round began
}

TEST_CASE("job: the first of two causes is found by age, whoever's report came first") {
  JobScene scene = running(0);
  scene.pass(seconds(4));
  scene.report("b", NodePhase::failed, worker_failure(9));
  Failure earlier = worker_failure(7);
  earlier.age = seconds(2);
  scene.pass(milliseconds(500));
  scene.report("a", NodePhase::stopped, earlier);
  scene.report("b", NodePhase::stopped, worker_failure(9));
  CHECK(scene.told<Close>("b").verdict.exit_code == 7);
}

TEST_CASE("job: a report that was long on its way is put right by the next one") {
  JobScene scene = running(0);
  scene.pass(seconds(4));
  scene.report("a", NodePhase::failed, worker_failure(9));
  scene.pass(milliseconds(100));
  scene.report("b", NodePhase::failed, worker_failure(7));
  Failure repeated = worker_failure(7);
  repeated.age = seconds(2);
  scene.report("b", NodePhase::stopped, repeated);
  scene.report("a", NodePhase::stopped, worker_failure(9));
  CHECK(scene.told<Close>("b").verdict.exit_code == 7);
}

TEST_CASE("job: a node may learn better which of its deaths came first") {
  JobScene scene = running(0);
  scene.pass(seconds(1));
  Failure consequence = worker_failure(1, 0);
  consequence.secondary = true;
  scene.report("a", NodePhase::failed, consequence);
  CHECK(scene.told<Stop>("b").cause == consequence);
  scene.pass(seconds(2));
  SECTION("the cause replaces a consequence, and all are told") {
    scene.report("a", NodePhase::stopped, worker_failure(7, 1));
    REQUIRE(std::any_of(scene.effects().begin(), scene.effects().end(), [](const auto& effect) {
      return std::holds_alternative<OrdersChanged>(effect);
    }));
    CHECK(scene.told<Stop>("b").cause == worker_failure(7, 1));
    scene.report("b", NodePhase::stopped);
    CHECK(scene.told<Close>("b").verdict.exit_code == 7);
  }
  SECTION("not the other way round") {
    scene.report("a", NodePhase::failed, worker_failure(7, 1));
    scene.report("a", NodePhase::stopped, consequence);
    scene.report("b", NodePhase::stopped);
    CHECK(scene.told<Close>("b").verdict.exit_code == 7);
  }
  SECTION("nor does an interruption that came later") {
    scene.report("a", NodePhase::stopped, interruption(15));
    scene.report("b", NodePhase::stopped);
    CHECK(scene.told<Close>("b").verdict.failure == consequence);
  }
  SECTION("ties are added to what is known, and it isn't later for that") {
    Failure tied = consequence;
    tied.tied_ranks = {1};
    scene.report("a", NodePhase::stopped, tied);
    Failure later = consequence;
    later.exit_code = 9;
    later.age = seconds(1);
    scene.report("b", NodePhase::stopped, later);
    CHECK(scene.told<Close>("b").verdict.failure == tied);
  }
}

TEST_CASE("job: a program that cannot be started ends it, restarts or not") {
  JobScene scene = running(5);
  Failure failure = worker_failure(127);
  failure.kind = FailureKind::spawn_failed;
  scene.report("a", NodePhase::failed, failure);
  scene.report("a", NodePhase::stopped, failure);
  scene.report("b", NodePhase::stopped);
  CHECK(scene.told<Close>("b").verdict.exit_code == exit_code::kNotFound);
}

TEST_CASE("job: an agent that stops by itself and does not say why is not waited for") {
  JobScene scene = running(5);
  scene.report("a", NodePhase::stopped);
  scene.report("b", NodePhase::stopped);
  CHECK(scene.told<Close>("b").verdict.exit_code == exit_code::kLauncherFailed);
}

// ---- pauses ------------------------------------------------------------------------------------

namespace {

// One node; its worker fails after `ran`, and all of it has been stopped.
void fail_after(JobScene& scene, Duration ran) {
  scene.run("a");
  scene.pass(ran, [&] { scene.report("a", NodePhase::running); });
  scene.report("a", NodePhase::failed, worker_failure(3));
  scene.report("a", NodePhase::stopped, worker_failure(3));
}

}  // namespace

TEST_CASE("job: a worker that fails again and again at once is given pauses") {
  JobScene scene({1, 1}, 100, milliseconds(150));
  scene.arrive("a");
  for (int i = 0; i < 3; ++i) {
    fail_after(scene, milliseconds(20));
    REQUIRE(scene.is_told<Run>("a"));
  }
  fail_after(scene, milliseconds(20));
  const Wait wait = scene.told<Wait>("a");
  CHECK(wait.pausing);
  CHECK(wait.remaining == milliseconds(100));
  CHECK(wait.reason ==
        "restarting after a pause: workers have failed 4 times in a row right after their start");
  CHECK(scene.job().state_line() == wait.reason);
  CHECK(scene.job().next_deadline() == scene.now() + milliseconds(100));
  scene.pass(milliseconds(99));
  CHECK(scene.told<Wait>("a").remaining == milliseconds(1));
  scene.pass(milliseconds(1));
  CHECK(scene.is_told<Run>("a"));

  fail_after(scene, milliseconds(20));
  CHECK(scene.told<Wait>("a").remaining == milliseconds(150));
  scene.pass(milliseconds(150));

  fail_after(scene, seconds(5));
  CHECK(scene.is_told<Run>("a"));
}

TEST_CASE("job: an interruption ends a pause and the job") {
  JobScene scene({1, 1}, 100, seconds(5));
  scene.arrive("a");
  for (int i = 0; i < 4; ++i) fail_after(scene, milliseconds(20));
  REQUIRE(scene.told<Wait>("a").pausing);
  scene.report("a", NodePhase::stopped, interruption(2));
  CHECK(scene.told<Close>("a").verdict.exit_code == 130);
  CHECK(scene.told<Close>("a").verdict.restarts_used == 3);  // the fourth was not begun
}

// ---- interruption ----------------------------------------------------------------------------

TEST_CASE("job: it ends when an agent with a part in it is interrupted") {
  JobScene scene = running(5);
  scene.report("a", NodePhase::stopping, interruption(15));
  CHECK(scene.is_told<Stop>("b"));
  scene.report("a", NodePhase::stopped, interruption(15));
  scene.report("b", NodePhase::stopped);
  CHECK(scene.told<Close>("b").verdict.exit_code == 143);
}

TEST_CASE("job: interrupted while a failed round is being stopped, it does not start again") {
  JobScene scene = running(5);
  scene.report("a", NodePhase::failed, worker_failure(3));
  CHECK(scene.is_told<Stop>("b"));
  scene.report("a", NodePhase::failed, interruption(2));
  scene.report("a", NodePhase::stopped, interruption(2));
  scene.report("b", NodePhase::stopped);
  CHECK(scene.told<Close>("b").verdict.exit_code == 130);
  CHECK(scene.told<Close>("b").verdict.failure->kind == FailureKind::interrupted);
}

TEST_CASE("job: an interrupted agent that has not begun its round is not waited for") {
  JobScene scene;
  scene.arrive("a");
  scene.arrive("b");
  scene.run("b");
  NodeStatus status = status_of(NodePhase::idle);
  status.failure = interruption(2);
  scene.report("a", status);
  scene.report("b", NodePhase::stopped);
  CHECK(scene.told<Close>("b").verdict.exit_code == 130);
}

TEST_CASE("job: before the first round an interrupted node leaves alone") {
  JobScene scene({3, 3});
  scene.arrive("a");
  scene.arrive("b");
  NodeStatus status = status_of(NodePhase::idle);
  status.failure = interruption(2);
  CHECK(scene.report("a", status) == "this node left before it had a part in the job");
  CHECK(scene.told<Wait>("b").reason == "1 of 3 nodes: waiting for 2 more");
}

TEST_CASE("job: but with the agent beside an embedded coordinator it ends") {
  JobScene scene({3, 3});
  scene.join(description("a", {3, 3}), true);
  scene.arrive("b");
  NodeStatus status = status_of(NodePhase::idle);
  status.failure = interruption(15);
  scene.report("a", status);
  CHECK(scene.told<Close>("b").verdict.exit_code == 143);
}

}  // namespace ddp::rendezvous::test
