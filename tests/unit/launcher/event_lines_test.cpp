#include "launcher/core/event_lines.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <csignal>

namespace ddp::launcher::test {
namespace {

using rendezvous::FailureKind;
using rendezvous::NodePhase;

constexpr RoundId kRound{2, 0xab};
constexpr EventLines::WallTime kNow{1'700'000'000'000'042};

EventLines make_lines() {
  LaunchConfig config;
  config.workers = 2;
  config.run_id = "job";
  config.signals_to_handle = {SIGUSR2};
  return {config, "alpha", {"cafe"}};
}

Placement placement(std::int32_t restart_count = 0) {
  Placement placement;
  placement.round = kRound;
  placement.first_rank = {4};
  placement.world_size = 6;
  placement.restart_count = restart_count;
  placement.max_restarts = 3;
  return placement;
}

NodeStatus status(NodePhase phase) {
  NodeStatus status;
  status.phase = phase;
  status.round = kRound;
  return status;
}

Failure death() {
  Failure failure;
  failure.kind = FailureKind::worker_signaled;
  failure.rank = 5;
  failure.local_rank = 1;
  failure.pid = 101;
  failure.host = "alpha";
  failure.signal = SIGSEGV;
  return failure;
}

// Without its beginning, which is the same for all.
std::string of(EventLines& lines, const AgentEvent& event) {
  const std::string line = lines.of(event, kNow);
  const std::string time = "{\"time\":1700000000.000042,\"event\":";
  return line.compare(0, time.size(), time) == 0 ? line.substr(time.size()) : line;
}
std::string of(EventLines& lines, const AgentEffect& effect) {
  const std::string line = lines.of(AgentEffects{effect}, kNow);
  const std::string time = "{\"time\":1700000000.000042,\"event\":";
  return line.compare(0, time.size(), time) == 0 ? line.substr(time.size()) : line;
}

}  // namespace

TEST_CASE("event lines: the first one tells what was launched") {
  const std::string line = make_lines().launched(kNow);
  CHECK(
      line ==
      "{\"time\":1700000000.000042,\"event\":\"launched\",\"format\":1,\"run_id\":\"job\",\"host\":"
      "\"alpha\",\"node\":\"cafe\",\"workers\":2,\"min_nodes\":1,\"max_nodes\":1,\"max_restarts\":"
      "0}\n");
}

TEST_CASE("event lines: a worker fails and all start again") {
  EventLines lines = make_lines();
  CHECK(of(lines, AgentEffect{SpawnWorkers{placement(), {}}}).empty());
  CHECK(of(lines, WorkersSpawned{kRound, {100, 101}}) ==
        "\"workers_started\",\"round\":2,\"first_rank\":4,\"world_size\":6,\"restart_count\":0,"
        "\"pids\":[100,101]}\n");
  WorkerExit exit{LocalRank{1}, -1, SIGSEGV, true};
  exit.peak_memory = 4096;
  CHECK(of(lines, WorkersExited{kRound, {exit}}) ==
        "\"worker_exited\",\"round\":2,\"rank\":5,\"local_rank\":1,\"pid\":101,\"signal\":11,"
        "\"signal_name\":\"SIGSEGV\",\"core_dumped\":true,\"peak_memory\":4096}\n");
  CHECK(
      of(lines, AgentEffect{PublishDeath{death()}}) ==
      "\"death_published\",\"round\":2,\"rank\":5,\"local_rank\":1,\"pid\":101,\"host\":\"alpha\","
      "\"signal\":11,\"signal_name\":\"SIGSEGV\",\"reason\":\"rank 5 (local rank 1, pid 101) on "
      "alpha was killed by SIGSEGV\"}\n");
  NodeStatus failed = status(NodePhase::failed);
  failed.failure = death();
  CHECK(of(lines, AgentEffect{ReportStatus{failed}}) ==
        "\"stopping\",\"round\":2,\"reason\":\"rank 5 (local rank 1, pid 101) on alpha was killed "
        "by SIGSEGV\"}\n");
  CHECK(of(lines, AgentEffect{ReportStatus{failed}}).empty());
  CHECK(of(lines, AgentEffect{KillWorker{LocalRank{0}}}) ==
        "\"worker_killed\",\"round\":2,\"rank\":4,\"local_rank\":0,\"pid\":100}\n");
  CHECK(of(lines, AgentEffect{ReportStatus{status(NodePhase::stopped)}}) ==
        "\"round_over\",\"round\":2,\"succeeded\":false}\n");
  CHECK(of(lines, AgentEffect{SpawnWorkers{placement(1), {}}}) ==
        "\"restart\",\"round\":2,\"restart_count\":1,\"max_restarts\":3}\n");
}

TEST_CASE("event lines: a round that succeeded is over once") {
  EventLines lines = make_lines();
  CHECK(of(lines, AgentEffect{ReportStatus{status(NodePhase::succeeded)}}) ==
        "\"round_over\",\"round\":2,\"succeeded\":true}\n");
  CHECK(of(lines, AgentEffect{ReportStatus{status(NodePhase::stopping)}}).empty());
  CHECK(of(lines, AgentEffect{ReportStatus{status(NodePhase::stopped)}}).empty());
}

TEST_CASE("event lines: what is waited for is told when it changes") {
  EventLines lines = make_lines();
  const auto wait = [](const std::string& reason) {
    return OrderReceived{rendezvous::Wait{reason, std::chrono::milliseconds(1500), true}};
  };
  CHECK(of(lines, wait("a pause")) ==
        "\"waiting\",\"reason\":\"a pause\",\"pausing\":true,\"seconds\":1.5E0}\n");
  CHECK(of(lines, wait("a pause")).empty());
  CHECK_FALSE(of(lines, wait("another pause")).empty());
  CHECK(of(lines, OrderReceived{rendezvous::Run{placement()}}).empty());
  CHECK_FALSE(of(lines, wait("another pause")).empty());
  CHECK(of(lines, OrderReceived{rendezvous::Wait{"0 of 1 node", std::nullopt}}).empty());
}

TEST_CASE("event lines: signals with what they mean for the job") {
  EventLines lines = make_lines();
  const auto meaning = [&lines](std::int32_t signal) {
    const std::string line = lines.of(AgentEvent{SignalReceived{signal}}, kNow);
    if (line.empty()) return std::string();
    return std::string(boost::json::parse(line).at("meaning").as_string());
  };
  CHECK(meaning(SIGTERM) == "ends_job");
  CHECK(meaning(SIGUSR1) == "passed_on");
  CHECK(meaning(SIGUSR2) == "ends_job");
  CHECK(meaning(SIGTSTP) == "suspends");
  CHECK(meaning(SIGCONT).empty());
  CHECK(meaning(SIGWINCH).empty());
  CHECK(of(lines, AgentEffect{StopGuardian{}}) == "\"suspended\"}\n");
  CHECK(lines.of(AgentEffects{StopGuardian{}}, kNow).empty());  // asked once more
  CHECK(meaning(SIGCONT) == "resumes");
}

TEST_CASE("event lines: the last one is the verdict") {
  EventLines lines = make_lines();
  CHECK(of(lines, AgentEffect{ExitAgent{139, Verdict{139, "it failed", death(), 2}}}) ==
        "\"verdict\",\"exit_code\":139,\"reason\":\"it failed\",\"restarts_used\":2,\"failure\":{"
        "\"rank\":5,\"local_rank\":1,\"pid\":101,\"host\":\"alpha\",\"signal\":11,\"signal_name\":"
        "\"SIGSEGV\",\"reason\":\"rank 5 (local rank 1, pid 101) on alpha was killed by SIGSEGV\"}}"
        "\n");
  CHECK(of(lines, AgentEffect{ExitAgent{130, std::nullopt}}) == "\"verdict\",\"exit_code\":130}\n");
}

TEST_CASE("event lines: what is no text stays one line of JSON") {
  EventLines lines = make_lines();
  const std::string line = of(lines, CoordinatorSilent{"a\n\"\xff\x01"});
  CHECK(line.find('\n') == line.size() - 1);
  CHECK_NOTHROW(boost::json::parse("{\"event\":" + line));
}

}  // namespace ddp::launcher::test
