#include "launcher/core/verdict.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>

#include "launcher/core/failure_text.h"
#include "launcher/core/quantity_text.h"
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

TEST_CASE("verdict: how long it ran, in what it says last, and what others did") {
  Failure failure = worker_failure();
  failure.ran_for = std::chrono::milliseconds(12'340);
  failure.message = "ValueError: no such label";
  failure.last_output =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
      "ValueError: no such label\n";
  failure.tied_ranks = {2, 7};
  VerdictContext context{2, 0, {{1, 0, 3}, {-1, SIGABRT, 1}}};
  CHECK(verdict_text(Verdict{3, "", failure, 0}, context) ==
        "ddplaunch: the job failed: rank 5 (local rank 1, pid 4243) on beta exited with code 3 "
        "after 12 s\n"
        "  ranks 5, 2 and 7 were found dead in the same moment: any of them may have been the "
        "first\n"
        "  it says: ValueError: no such label\n"
        "  its last output:\n"
        "    Traceback (most recent call last):\n"
        "      File \"train.py\", line 3, in <module>\n"
        "  3 others exited with code 1, 1 other was killed by SIGABRT, 2 workers were stopped on "
        "this node, ddplaunch exits with 3\n");
}

TEST_CASE("verdict: a consequence without a cause is called that") {
  Failure failure = worker_failure();
  failure.secondary = true;
  CHECK(
      verdict_text(Verdict{3, "", failure, 0}, {}) ==
      "ddplaunch: the job failed: rank 5 (local rank 1, pid 4243) on beta exited with code 3\n"
      "  so it lost a peer, but no worker is known to have failed before it: one may hang, or the "
      "network broke\n"
      "  ddplaunch exits with 3\n");
}

TEST_CASE("verdict: who sent SIGKILL, as far as the kernel tells") {
  Failure failure = worker_failure();
  failure.kind = FailureKind::worker_signaled;
  failure.signal = SIGKILL;
  failure.peak_memory = 2'254'857'830;
  const auto text = [&failure] { return verdict_text(Verdict{137, "", failure, 0}, {}); };
  CHECK_THAT(text(), Catch::Contains("\n  at its peak it used 2.1 GiB\n"));
  failure.oom_counter = "cgroup /jobs/1";
  CHECK_THAT(text(),
             Catch::Contains("\n  SIGKILL was sent by another process: the kernel counts no "
                             "kill for want of memory (cgroup /jobs/1); at its peak"));
  failure.oom_killed = true;
  CHECK_THAT(text(),
             Catch::Contains("\n  the kernel killed for want of memory in this round (cgroup "
                             "/jobs/1): most likely this worker; at its peak it used 2.1 GiB\n"));
  failure.kind = FailureKind::worker_exited;
  failure.signal = 0;
  failure.exit_code = 137;
  CHECK_THAT(text(),
             Catch::Contains(
                 "in this round (cgroup /jobs/1): perhaps this worker, perhaps something else"));
}

TEST_CASE("verdict: whatever happened it can be read without scrolling") {
  Failure failure = worker_failure();
  failure.kind = FailureKind::worker_signaled;
  failure.signal = SIGKILL;
  failure.oom_counter = "this host";
  failure.secondary = true;
  for (int i = 0; i < 200; ++i) {
    failure.message += "said " + std::to_string(i) + "\n";
    failure.last_output += std::string(2000, 'x') + "\n";
    failure.tied_ranks.push_back(i);
  }
  VerdictContext context{2, 3, {}};
  for (int i = 1; i < 100; ++i) context.others_failed.push_back({i, 0, i});
  const std::string text = verdict_text(Verdict{137, "", failure, 3}, context);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 25);
  CHECK(text.size() < 6000);
  CHECK_THAT(text, Catch::Contains(" and others were found dead"));
  CHECK_THAT(text, Catch::Contains("more in other ways"));
}

TEST_CASE("verdict: durations and amounts as exact as one wants to know") {
  using std::chrono::milliseconds;
  CHECK(duration_text(milliseconds(0)) == "0.00 s");
  CHECK(duration_text(milliseconds(2'059)) == "2.05 s");
  CHECK(duration_text(milliseconds(59'999)) == "59 s");
  CHECK(duration_text(milliseconds(200'000)) == "3 min 20 s");
  CHECK(duration_text(milliseconds(7'500'000)) == "2 h 5 min");
  CHECK(memory_text(812 * 1024) == "812 KiB");
  CHECK(memory_text(96 * 1024 * 1024) == "96 MiB");
  CHECK(memory_text(std::int64_t{5} << 30) == "5.0 GiB");
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
        "  2 workers were stopped on this node, ddplaunch exits with 139\n"
        "  hint: ulimit -c unlimited before the launch keeps a core for the debugger\n");
}

TEST_CASE("verdict: a worker's message cannot steer the terminal") {
  Failure failure = worker_failure();
  failure.message = std::string("\x1b[2Jcleared\a\r") + std::string(1, '\0') + "\tkept";
  CHECK(verdict_text(Verdict{3, "rank 5 failed", failure, 0}, {0, 0}) ==
        "ddplaunch: the job failed: rank 5 (local rank 1, pid 4243) on beta exited with code 3\n"
        "  it says: ?[2Jcleared???\tkept\n  ddplaunch exits with 3\n");
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

TEST_CASE("verdict: what a worker says can't move the cursor of whoever reads it") {
  using ddp::launcher::printable;
  CHECK(printable("loss 0.5\tµ – 損失") == "loss 0.5\tµ – 損失");
  CHECK(printable("\x1b[31m\a") == "?[31m?");
  CHECK(printable("\x9b"
                  "31m, \xc2\x9b"
                  "31m") == "?31m, ?31m");                  // the 8-bit form, and as UTF-8
  CHECK(printable("a\u202eb\u2066c\u2028d") == "a?b?c?d");  // from right to left, lines
  CHECK(printable("\xc0\xaf \xe2\x82 \xed\xa0\x80 \xff") == "?? ?? ??? ?");  // no UTF-8
}
