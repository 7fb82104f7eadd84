// Runs a test's body once per rank, each in a process of its own, and collects what each reports.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <ddp/backend.h>

namespace ddp::test {

// What a rank's process leaves behind, in memory that the parent shares.
struct RankReport {
  ddp_status status = DDP_OK;
  int error_rank = -1;
  char message[1024] = "";
  double seconds = 0;     // Of the step that the test is about.
  char wrong[512] = "";   // Empty: the body found everything as it should be.
  bool finished = false;  // The body returned.

  void fail(const std::string& what);
  void record(ddp_status outcome, const ddp_error_v1& error);
};

struct RankOutcome {
  RankReport report;
  int exit_code = -1;  // -1: ended by a signal.
  int signal = 0;
  bool hung = false;  // Had to be killed at the deadline.
};

using RankBody = std::function<void(int rank, RankReport& report)>;

// Forks `ranks` processes. At the deadline those still alive are killed and marked as hung. None
// outlives the call.
[[nodiscard]] std::vector<RankOutcome> run_ranks(
    int ranks, const RankBody& body, std::chrono::milliseconds deadline = std::chrono::seconds(60));

// True as soon as `condition` is; false at the deadline.
[[nodiscard]] bool wait_until(const std::function<bool()>& condition,
                              std::chrono::milliseconds deadline = std::chrono::seconds(10));

// The state letter of a process or thread in /proc: "S" waits in the kernel, "Z" is dead; empty if
// there is none.
[[nodiscard]] std::string state_of(pid_t id);

}  // namespace ddp::test
