#include <catch2/catch.hpp>
#include <string>

#include "rendezvous/core/job.h"
#include "tests/unit/rendezvous/job_scene.h"

namespace ddp::rendezvous::test {
namespace {

const auto kSecondLook = milliseconds(200);

JobScene running(NodeLimits limits = {2, 2}) {
  JobScene scene(limits, 0);
  scene.arrive("a");
  scene.arrive("b");
  scene.run("a");
  scene.report("a", NodePhase::running);
  scene.report("b", NodePhase::running);
  return scene;
}

bool dropped(const JobScene& scene, const std::string& name) {
  for (const JobEffect& effect : scene.effects()) {
    const auto* drop = std::get_if<DropNode>(&effect);
    if (drop != nullptr && drop->node == node_id(name)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("job: a closed connection gives a node a second to come back") {
  JobScene scene = running();
  scene.disconnect("b");
  scene.pass(milliseconds(999));
  SECTION("it does") {
    scene.join(description("b", {2, 2}, 0));
    scene.pass(seconds(2));
    CHECK(scene.is_told<Run>("a"));
  }
  SECTION("it does not") {
    scene.pass(milliseconds(1));
    CHECK(scene.is_told<Run>("a"));  // what it said may wait to be read
    scene.pass(kSecondLook);
    CHECK(dropped(scene, "b"));
    CHECK(scene.told<Stop>("a").cause->kind == FailureKind::node_lost);
  }
}

TEST_CASE("job: five seconds of silence are a loss") {
  JobScene scene = running();
  const auto heard = [&] { scene.report("a", NodePhase::running); };
  scene.pass(seconds(4), heard);
  CHECK(scene.is_told<Run>("a"));
  scene.pass(seconds(1), heard);
  CHECK(scene.is_told<Run>("a"));
  scene.pass(kSecondLook);
  CHECK(dropped(scene, "b"));
  CHECK(scene.told<Stop>("a").reason ==
        "host b was lost: nothing was heard of it for 5 s (host down, paused or cut off?)");
}

TEST_CASE("job: a coordinator that was paused blames nobody whose words waited to be read") {
  JobScene scene = running();
  scene.pass(seconds(60));
  scene.report("a", NodePhase::running);
  scene.report("b", NodePhase::running);
  scene.pass(kSecondLook);
  CHECK(scene.is_told<Run>("a"));
}

TEST_CASE("job: the silence of an agent in the same process means nothing") {
  JobScene scene({1, 1}, 0);
  scene.join(description("a", {1, 1}, 0), true);
  scene.report("a", status_of(NodePhase::idle));
  scene.pass(seconds(3600));
  scene.pass(seconds(3600));
  CHECK(scene.is_told<Run>("a"));
}

TEST_CASE("job: the loss of a node costs no restart, and the others form again") {
  JobScene scene = running({1, 2});
  scene.disconnect("b");
  scene.pass(seconds(1));
  scene.pass(kSecondLook);
  scene.report("a", NodePhase::stopped);
  const Placement placement = scene.run("a");
  CHECK(placement.round.number == 2);
  CHECK(placement.restart_count == 0);
  CHECK(placement.group_world_size == 1);
}

TEST_CASE("job: a worker that dies of the loss of a node is not charged") {
  JobScene scene = running({1, 2});
  scene.pass(milliseconds(300));
  scene.report("a", NodePhase::failed, worker_failure(1));  // lost its peer
  scene.disconnect("b");
  scene.report("a", NodePhase::stopped, worker_failure(1));
  CHECK(scene.is_told<Stop>("a"));
  scene.pass(seconds(1));
  scene.pass(kSecondLook);
  CHECK(scene.run("a").restart_count == 0);
}

TEST_CASE("job: without enough nodes it gives up after the join timeout") {
  JobScene scene = running();
  scene.disconnect("b");
  scene.pass(seconds(1));
  scene.pass(kSecondLook);
  scene.report("a", NodePhase::stopped);
  CHECK(scene.told<Wait>("a").reason == "1 of 2 nodes (lost: b): waiting for 1 more");
  const auto heard = [&] { scene.report("a", NodePhase::stopped); };
  SECTION("nobody comes") {
    scene.pass(seconds(600), heard);
    const Verdict verdict = scene.told<Close>("a").verdict;
    CHECK(verdict.exit_code == exit_code::kNodeLost);
    CHECK(verdict.reason == "lost b, and 1 of 2 nodes were there within 600 s: host a (10.0.0.a)");
  }
  SECTION("another one comes and takes the place") {
    scene.pass(seconds(300), heard);
    scene.join(description("c", {2, 2}, 0));
    scene.report("c", status_of(NodePhase::idle));
    CHECK(scene.run("a").group_rank == GroupRank{0});
    CHECK(scene.run("c").group_rank == GroupRank{1});
  }
}

TEST_CASE("job: a lost node that is back has to stop its old round before it counts") {
  JobScene scene = running();
  const RoundId first = scene.round();
  scene.disconnect("b");
  scene.pass(seconds(1));
  scene.pass(kSecondLook);
  scene.report("a", NodePhase::stopped);
  scene.join(description("b", {2, 2}, 0));
  scene.report("b", status_of(NodePhase::running, first));
  CHECK(scene.told<Stop>("b").round == first);
  CHECK(scene.is_told<Wait>("a"));
  scene.report("b", status_of(NodePhase::stopped, first));
  CHECK(scene.run("b").round.number == 2);
}

TEST_CASE("job: a node whose workers have all succeeded may be lost, unless it holds the store") {
  JobScene scene = running();
  const auto lose = [&](const std::string& name) {
    scene.report(name, NodePhase::succeeded);
    scene.disconnect(name);
    scene.pass(seconds(1));
    scene.pass(kSecondLook);
  };
  SECTION("group rank 1") {
    lose("b");
    CHECK(scene.is_told<Run>("a"));
    scene.report("a", NodePhase::succeeded);
    CHECK(scene.told<Close>("a").verdict.exit_code == 0);
  }
  SECTION("group rank 0") {
    lose("a");
    CHECK(scene.is_told<Stop>("b"));
  }
}

TEST_CASE("job: a verdict holds for who was lost, and a closed job takes nobody new") {
  JobScene scene = running();
  scene.report("a", NodePhase::succeeded);
  scene.report("b", NodePhase::succeeded);
  scene.disconnect("b");
  scene.pass(seconds(1));
  scene.pass(kSecondLook);
  NodeStatus acknowledged = status_of(NodePhase::stopped, scene.round());
  acknowledged.verdict_acknowledged = true;
  scene.report("a", acknowledged);
  CHECK(scene.is_told<Leave>("a"));

  CHECK(scene.join(description("b", {2, 2}, 0)).empty());
  CHECK(scene.told<Close>("b").verdict.exit_code == 0);
  scene.report("b", acknowledged);
  CHECK(scene.is_told<Leave>("b"));
  CHECK(scene.join(description("c", {2, 2}, 0)) ==
        "job 'job': it has ended already (exit code 0: every worker succeeded), host c comes too "
        "late; choose another run id");
}

}  // namespace ddp::rendezvous::test
