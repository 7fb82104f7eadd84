#include "rendezvous/core/round_outcome.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace ddp::rendezvous::test {
namespace {

DatedFailure at(int second, FailureKind kind, std::int32_t code_or_signal = 0) {
  Failure failure;
  failure.kind = kind;
  failure.host = "h" + std::to_string(second);
  if (kind == FailureKind::worker_exited || kind == FailureKind::spawn_failed) {
    failure.exit_code = code_or_signal;
  } else {
    failure.signal = code_or_signal;
  }
  return {failure, Instant{} + std::chrono::seconds(second)};
}

DatedFailure lost_peer(int second, std::int32_t code) {
  DatedFailure dated = at(second, FailureKind::worker_exited, code);
  dated.failure.secondary = true;
  return dated;
}

constexpr auto kExited = FailureKind::worker_exited;
constexpr auto kSignaled = FailureKind::worker_signaled;
constexpr auto kSpawn = FailureKind::spawn_failed;
constexpr auto kInterrupted = FailureKind::interrupted;
constexpr auto kLost = FailureKind::node_lost;
constexpr auto kLauncher = FailureKind::launcher_failed;

constexpr int kAgain = -1;      // a new round, free
constexpr int kPaidAgain = -2;  // a new round for one restart

int outcome(std::vector<DatedFailure> failures, RestartBudget budget) {
  const RoundOutcome outcome = decide_outcome(std::move(failures), budget);
  if (const auto* again = std::get_if<StartAgain>(&outcome)) {
    return again->costs_restart ? kPaidAgain : kAgain;
  }
  return std::get<EndJob>(outcome).verdict.exit_code;
}

}  // namespace

TEST_CASE("round_outcome: the first cause decides") {
  struct Row {
    std::string what;
    std::vector<DatedFailure> failures;
    RestartBudget budget;
    int expected;
  };
  const std::vector<Row> table = {
      {"a death is paid from the budget", {at(1, kExited, 7)}, {0, 1}, kPaidAgain},
      {"the last restart", {at(1, kExited, 7)}, {2, 3}, kPaidAgain},
      {"no restart left: the worker's own code", {at(1, kExited, 7)}, {3, 3}, 7},
      {"a signal is 128 and more", {at(1, kSignaled, 11)}, {0, 0}, 139},
      {"the earlier of two, whatever their order",
       {at(5, kExited, 5), at(2, kExited, 2)},
       {0, 0},
       2},
      {"a program that cannot be started is not tried again", {at(1, kSpawn, 127)}, {0, 9}, 127},
      {"an interruption ends the job", {at(1, kInterrupted, 15)}, {0, 9}, 143},
      {"also after a death that would have been cured",
       {at(1, kExited, 7), at(2, kInterrupted, 2)},
       {0, 9},
       130},
      {"but not in place of one that would not",
       {at(1, kExited, 7), at(2, kInterrupted, 2)},
       {0, 0},
       7},
      {"a batch system's signal that reached the worker first",
       {at(1, kSignaled, 15), at(1, kInterrupted, 15)},
       {0, 0},
       143},
      {"the loss of a node is free", {at(1, kLost)}, {0, 0}, kAgain},
      {"and so is what dies of it", {at(1, kLost), at(2, kExited, 1)}, {0, 0}, kAgain},
      {"but not what died before it", {at(1, kExited, 4), at(2, kLost)}, {0, 0}, 4},
      {"and a death before it is paid", {at(1, kExited, 4), at(2, kLost)}, {0, 1}, kPaidAgain},
      {"an interruption ends the job also after a loss",
       {at(1, kLost), at(2, kInterrupted, 15)},
       {0, 0},
       143},
      {"a consequence is no first cause beside a cause, however early it was seen",
       {lost_peer(1, 5), at(3, kExited, 7)},
       {0, 0},
       7},
      {"alone it is", {lost_peer(2, 5), lost_peer(1, 6)}, {0, 0}, 6},
      {"nor beside the loss of a node", {lost_peer(1, 5), at(3, kLost)}, {0, 0}, kAgain},
      {"an interruption is no cause of it if it came later",
       {lost_peer(1, 5), at(3, kInterrupted, 15)},
       {0, 0},
       5},
      {"and comes before a cause that was seen after it",
       {lost_peer(1, 5), at(2, kInterrupted, 15), at(3, kExited, 7)},
       {0, 0},
       143},
      {"a launcher that fails ends the job", {at(1, kLauncher)}, {0, 9}, 1},
      {"a death without a code is still a failure", {at(1, kExited, -1)}, {0, 0}, 1},
      {"the greatest code there is", {at(1, kExited, 255)}, {0, 0}, 255},
      {"a code that no process ends with", {at(1, kExited, 256)}, {0, 0}, 1},
      {"a signal that there is not", {at(1, kSignaled, 2147483647)}, {0, 0}, 1},
  };
  for (const Row& row : table) {
    INFO(row.what);
    CHECK(outcome(row.failures, row.budget) == row.expected);
  }
}

TEST_CASE("round_outcome: whoever is stopped is told the cause, not the consequence") {
  CHECK(first_cause({}) == nullptr);
  const std::vector<DatedFailure> failures = {lost_peer(1, 5), at(3, kExited, 7),
                                              at(2, kExited, 6)};
  CHECK(first_cause(failures)->failure.exit_code == 6);
}

TEST_CASE("round_outcome: the verdict tells how many restarts were used") {
  const RoundOutcome outcome = decide_outcome({at(1, kExited, 7)}, {2, 2});
  const Verdict& verdict = std::get<EndJob>(outcome).verdict;
  CHECK(verdict.restarts_used == 2);
  CHECK(verdict.failure == at(1, kExited, 7).failure);
  CHECK(verdict.reason == "a worker failed on host h1 and no restart is left (2 of 2 used)");
}

TEST_CASE("round_outcome: who died of the signal that interrupted its launcher is not blamed") {
  const auto blamed = [](std::vector<DatedFailure> failures) {
    return std::get<EndJob>(decide_outcome(std::move(failures), {0, 0})).verdict.failure->kind;
  };
  DatedFailure death = at(5, kSignaled, 15);
  death.happened -= std::chrono::milliseconds(10);
  CHECK(blamed({death, at(5, kInterrupted, 15)}) == kInterrupted);
  CHECK(blamed({death, at(5, kInterrupted, 2)}) == kSignaled);
  CHECK(blamed({at(3, kSignaled, 15), at(5, kInterrupted, 15)}) == kSignaled);
  CHECK(blamed({at(5, kExited, 15), at(5, kInterrupted, 15)}) == kExited);
}

}  // namespace ddp::rendezvous::test
