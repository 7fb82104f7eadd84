#include "launcher/core/verdict.h"

#include <catch2/catch.hpp>
#include <csignal>

#include "launcher/core/failure_text.h"
#include "launcher/core/signal_names.h"

namespace {

using namespace ddp::launcher;
using ddp::rendezvous::Failure;
using ddp::rendezvous::FailureKind;
using ddp::rendezvous::Verdict;

Failure worker_failure() {
  Failure failure;
  failure.rank = 5;
  failure.local_rank = 1;
  failure.pid = 4243;
  failure.host = "beta";
  failure.exit_code = 3;
  return failure;
}

}  // namespace

TEST_CASE("verdict: a success has nothing to say") {
  CHECK(verdict_text(Verdict{}, {3, 4}).empty());
}

TEST_CASE("verdict: the first cause, what followed, and the exit code") {
  CHECK(verdict_text(Verdict{3, "rank 5 failed", worker_failure(), 1}, {1, 2}) ==
        "ddplaunch: the job failed: rank 5 (local rank 1, pid 4243) on beta exited with code 3\n"
        "  1 worker was stopped on this node, 1 of 2 restarts used, ddplaunch exits with 3\n");
}

TEST_CASE("verdict: a signal has a name, an error file its say") {
  Failure failure = worker_failure();
  failure.kind = FailureKind::worker_signaled;
  failure.signal = SIGSEGV;
  failure.core_dumped = true;
  failure.message = "RuntimeError: no\nmore";
  CHECK(verdict_text(Verdict{139, "", failure, 0}, {2, 0}) ==
        "ddplaunch: the job failed: rank 5 (local rank 1, pid 4243) on beta was killed by SIGSEGV "
        "(core dumped)\n"
        "  it says:\n"
        "    RuntimeError: no\n"
        "    more\n"
        "  2 workers were stopped on this node, ddplaunch exits with 139\n");
}

TEST_CASE("verdict: a worker's message cannot steer the terminal") {
  Failure failure = worker_failure();
  failure.message = std::string("\x1b[2Jcleared\a\r") + std::string(1, '\0') + "\tkept";
  CHECK(verdict_text(Verdict{3, "rank 5 failed", failure, 0}, {0, 0}) ==
        "ddplaunch: the job failed: rank 5 (local rank 1, pid 4243) on beta exited with code 3\n"
        "  it says:\n    ?[2Jcleared???\tkept\n  ddplaunch exits with 3\n");
}

TEST_CASE("verdict: nor can what another host says") {
  Failure failure;
  failure.kind = FailureKind::launcher_failed;
  failure.host = "be\x1b[2Jta";
  failure.message = "it\nddplaunch: lies";
  CHECK(verdict_text(Verdict{1, "", failure, 0}, {}) ==
        "ddplaunch: the job failed: the launcher on be?[2Jta failed: it?ddplaunch: lies\n"
        "  ddplaunch exits with 1\n");
}

TEST_CASE("verdict: a long message is cut") {
  Failure failure = worker_failure();
  for (int i = 1; i <= 13; ++i) {
    failure.message += "line " + std::to_string(i) + "\n";
  }
  const std::string text = verdict_text(Verdict{3, "", failure, 0}, {});
  CHECK(text.find("line 12\n    ...\n") != std::string::npos);
  CHECK(text.find("line 13") == std::string::npos);
}

TEST_CASE("verdict: a program that could not be started has its reason in the first line") {
  Failure failure = worker_failure();
  failure.kind = FailureKind::spawn_failed;
  failure.exit_code = 127;
  failure.pid = -1;
  failure.message = "tarin: not found in PATH";
  CHECK(verdict_text(Verdict{127, "", failure, 0}, {}) ==
        "ddplaunch: the job failed: rank 5 (local rank 1) on beta could not be started: tarin: not "
        "found in PATH\n"
        "  ddplaunch exits with 127\n");
}

TEST_CASE("verdict: known codes of a started worker come with a hint") {
  Failure failure = worker_failure();
  for (const auto& [code, hint] : {std::pair(127,
                                             "hint: 127 mostly means that a program or a shared "
                                             "library was not found"),
                                   std::pair(126,
                                             "hint: 126 mostly means that a program may not be "
                                             "executed")}) {
    failure.exit_code = code;
    CHECK_THAT(verdict_text(Verdict{code, "", failure, 0}, {}), Catch::Contains(hint));
  }
}

TEST_CASE("verdict: an interruption is no failure") {
  Failure failure;
  failure.kind = FailureKind::interrupted;
  failure.host = "alpha";
  failure.signal = SIGINT;
  CHECK(verdict_text(Verdict{130, "", failure, 0}, {2, 0}) ==
        "ddplaunch: the job was stopped: the launcher on alpha was interrupted by SIGINT\n"
        "  2 workers were stopped on this node, ddplaunch exits with 130\n");
}

TEST_CASE("verdict: without a failure the reason stands alone") {
  CHECK(verdict_text(Verdict{120, "1 of 2 nodes came within 900 s", std::nullopt, 0}, {}) ==
        "ddplaunch: 1 of 2 nodes came within 900 s\n"
        "  ddplaunch exits with 120\n");
}

TEST_CASE("verdict: nodes and launchers fail too") {
  Failure failure;
  failure.host = "gamma";
  failure.kind = FailureKind::node_lost;
  failure.message = "no heartbeat for 5 s";
  CHECK(describe_failure(failure) == "node gamma was lost: no heartbeat for 5 s");
  failure.kind = FailureKind::launcher_failed;
  failure.message = "port 29500 is taken";
  CHECK(describe_failure(failure) == "the launcher on gamma failed: port 29500 is taken");
  CHECK(describe_failure(Failure{}) == "a worker exited with code -1");
}

TEST_CASE("verdict: signals by name, odd ones by number") {
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(SIGABRT) == "SIGABRT");
  CHECK(signal_name(42) == "signal 42");
}
