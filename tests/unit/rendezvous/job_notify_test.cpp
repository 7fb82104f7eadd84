// A job whose workers live on where others are lost.
#include <catch2/catch.hpp>

#include "tests/unit/rendezvous/job_scene.h"

namespace ddp::rendezvous::test {
namespace {

Failure killed(std::int32_t rank, std::int32_t signal = 9) {
  Failure failure;
  failure.kind = FailureKind::worker_signaled;
  failure.rank = rank;
  failure.host = "b";
  failure.signal = signal;
  return failure;
}

// Nodes a, b, c of one worker each; a has the store.
class NotifyScene : public JobScene {
 public:
  explicit NotifyScene(std::int32_t max_restarts = 0)
      : JobScene({3, 3}, max_restarts, Duration{}, true) {
    for (const char* name : {"a", "b", "c"}) arrive(name);
    run("a");
  }

  void lose(const std::string& name, const Failure& loss, NodePhase phase = NodePhase::succeeded,
            std::optional<Failure> failure = {}) {
    NodeStatus status = status_of(phase, round());
    status.loss = loss;
    status.lost_workers = 1;
    status.failure = std::move(failure);
    report(name, status);
  }
};

}  // namespace

TEST_CASE("notify: all are told of a loss, nobody is stopped, the verdict names it") {
  NotifyScene scene;
  scene.lose("b", killed(1));
  CHECK(scene.told<Run>("a").loss == killed(1));
  CHECK(scene.told<Run>("c").loss == killed(1));
  scene.report("a", NodePhase::succeeded);
  CHECK(scene.is_told<Run>("c"));
  scene.report("c", NodePhase::succeeded);
  const Verdict verdict = scene.told<Close>("a").verdict;
  CHECK(verdict.exit_code == 0);
  CHECK(verdict.reason == "every worker that was not lost succeeded");
  CHECK(verdict.failure == killed(1));
}

TEST_CASE("notify: the first loss stays the first") {
  NotifyScene scene;
  scene.lose("b", killed(1));
  scene.pass(milliseconds(10));
  scene.lose("c", killed(2, 11));
  CHECK(scene.told<Run>("a").loss == killed(1));
}

TEST_CASE("notify: a survivor that fails fails the job with the first loss") {
  NotifyScene scene;
  scene.lose("b", killed(1));
  scene.pass(milliseconds(10));
  scene.report("c", NodePhase::failed, worker_failure(4, 2));
  CHECK(scene.told<Stop>("a").cause == killed(1));
  scene.report("c", NodePhase::stopped, worker_failure(4, 2));
  scene.report("a", NodePhase::stopped);
  scene.lose("b", killed(1), NodePhase::stopped);
  CHECK(scene.told<Close>("a").verdict.exit_code == 137);
}

TEST_CASE("notify: with a restart left all start again") {
  NotifyScene scene(1);
  scene.lose("b", killed(1));
  scene.report("c", NodePhase::failed, worker_failure(4, 2));
  scene.report("c", NodePhase::stopped, worker_failure(4, 2));
  scene.report("a", NodePhase::stopped);
  scene.lose("b", killed(1), NodePhase::stopped);
  CHECK(scene.run("a").restart_count == 1);
  CHECK_FALSE(scene.told<Run>("a").loss);
}

TEST_CASE("notify: two nodes that each took theirs for the first death: the later one has failed") {
  NotifyScene scene;
  scene.lose("b", worker_failure(3, 1));
  scene.pass(milliseconds(10));
  CHECK(scene.is_told<Run>("a"));
  scene.lose("c", worker_failure(4, 2));
  CHECK(scene.told<Stop>("a").cause == worker_failure(3, 1));
}

TEST_CASE("notify: nobody is left, so the first loss decides") {
  NotifyScene scene;
  scene.lose("b", killed(1));
  scene.pass(milliseconds(10));
  scene.lose("c", killed(2, 11));
  scene.pass(milliseconds(10));
  CHECK(scene.is_told<Run>("a"));
  scene.lose("a", killed(0, 6));
  CHECK(scene.told<Stop>("a").cause == killed(1));
  for (const char* name : {"a", "b", "c"}) scene.lose(name, killed(1), NodePhase::stopped);
  CHECK(scene.told<Close>("a").verdict.exit_code == 137);
}

TEST_CASE("notify: the others live on without a node, unless it has the store") {
  NotifyScene scene;
  scene.disconnect("b");
  scene.pass(milliseconds(1000));
  scene.pass(milliseconds(200));
  CHECK(scene.told<Run>("a").loss->kind == FailureKind::node_lost);
  // It is back, but it has been given up.
  scene.join(scene.described("b"));
  scene.report("b", NodePhase::running);
  CHECK(scene.told<Stop>("b").reason == "the job goes on without this node, which was lost");
  scene.report("b", NodePhase::stopped);
  CHECK(scene.told<Wait>("b").reason == "the job runs on 2 other nodes: waiting for a place");
  scene.report("a", NodePhase::succeeded);
  scene.report("c", NodePhase::succeeded);
  CHECK(scene.told<Close>("b").verdict.exit_code == 0);
  CHECK(scene.told<Close>("b").verdict.failure->kind == FailureKind::node_lost);

  NotifyScene with_store;
  with_store.disconnect("a");
  with_store.pass(milliseconds(1000));
  with_store.pass(milliseconds(200));
  CHECK(with_store.is_told<Stop>("b"));
}

TEST_CASE("notify: a launcher that can't go on is a node that is lost") {
  NotifyScene scene;
  Failure failure;
  failure.kind = FailureKind::launcher_failed;
  failure.host = "b";
  scene.report("b", NodePhase::failed, failure);
  CHECK(scene.told<Run>("a").loss == failure);
  CHECK(scene.is_told<Stop>("b"));
  scene.report("a", NodePhase::succeeded);
  scene.report("c", NodePhase::succeeded);
  CHECK(scene.told<Close>("a").verdict.exit_code == 0);

  NotifyScene with_store;
  with_store.report("a", NodePhase::failed, failure);
  CHECK(with_store.is_told<Stop>("b"));
}

TEST_CASE("notify: an interruption ends the job, whatever was lost before") {
  NotifyScene scene;
  scene.lose("b", killed(1));
  scene.report("c", NodePhase::stopping, interruption(15));
  CHECK(scene.is_told<Stop>("a"));
  scene.report("a", NodePhase::stopped);
  scene.report("c", NodePhase::stopped, interruption(15));
  scene.lose("b", killed(1), NodePhase::stopped);
  CHECK(scene.told<Close>("a").verdict.exit_code == 143);
}

TEST_CASE("notify: a node that was lost leaves alone when it is interrupted") {
  NotifyScene scene;
  scene.disconnect("b");
  scene.pass(milliseconds(1000));
  scene.pass(milliseconds(200));
  scene.join(scene.described("b"));
  scene.report("b", NodePhase::stopped, interruption(15));
  CHECK(scene.is_told<Run>("a"));
}

TEST_CASE("notify: all nodes must be of one mind") {
  JobScene scene({2, 2}, 0, Duration{}, true);
  scene.arrive("a");
  CHECK(scene.join(description("b", {2, 2}, 0)) ==
        "job 'job': it was started with --on-failure notify, host b says restart; use the same on "
        "every node");
}

}  // namespace ddp::rendezvous::test
