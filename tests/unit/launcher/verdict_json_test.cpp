#include "launcher/core/verdict_json.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>

namespace {

namespace json = boost::json;
using namespace ddp::launcher;
using ddp::rendezvous::Failure;
using ddp::rendezvous::FailureKind;
using ddp::rendezvous::Verdict;

json::object parsed(const ReportFacts& facts, const VerdictContext& context) {
  const std::string text = verdict_json(facts, context);
  REQUIRE(text.back() == '\n');
  return json::parse(text).as_object();
}

}  // namespace

TEST_CASE("verdict_json: a success") {
  const json::object report =
      parsed({0, Verdict{0, "every worker succeeded", {}, 1}, "", "job", "alpha"}, {0, 3});
  CHECK(json::value(report) == json::value{{"format", 1},
                                           {"run_id", "job"},
                                           {"host", "alpha"},
                                           {"exit_code", 0},
                                           {"succeeded", true},
                                           {"reason", "every worker succeeded"},
                                           {"restarts_used", 1},
                                           {"max_restarts", 3},
                                           {"workers_stopped", 0},
                                           {"others_failed", json::array{}},
                                           {"first_cause", nullptr}});
}

TEST_CASE("verdict_json: the first cause with all that is known of it") {
  Failure failure;
  failure.kind = FailureKind::worker_signaled;
  failure.rank = 5;
  failure.local_rank = 1;
  failure.pid = 4243;
  failure.host = "beta";
  failure.signal = SIGKILL;
  failure.ran_for = std::chrono::milliseconds(1234);
  failure.oom_counter = "cgroup /x";
  failure.oom_killed = true;
  failure.peak_memory = 1 << 20;
  failure.message = "no\xff";
  failure.last_output = "a\nb";
  failure.tied_ranks = {6};
  const json::object report =
      parsed({137, Verdict{137, "", failure, 0}, "", "job", "alpha"}, {2, 0, {{1, 0, 3}}});
  CHECK_FALSE(report.at("succeeded").as_bool());
  CHECK(report.at("workers_stopped") == 2);
  CHECK(report.at("others_failed") ==
        json::value(json::array{json::object{{"count", 3}, {"exit_code", 1}}}));
  const json::object& cause = report.at("first_cause").as_object();
  CHECK(cause.at("kind") == "worker_signaled");
  CHECK(cause.at("rank") == 5);
  CHECK(cause.at("local_rank") == 1);
  CHECK(cause.at("pid") == 4243);
  CHECK(cause.at("host") == "beta");
  CHECK(cause.at("signal") == SIGKILL);
  CHECK(cause.at("signal_name") == "SIGKILL");
  CHECK_FALSE(cause.contains("exit_code"));
  CHECK(cause.at("ran_for_ms") == 1234);
  CHECK(cause.at("peak_memory") == 1 << 20);
  CHECK(cause.at("oom_killed") == true);
  CHECK(cause.at("oom_counter") == "cgroup /x");
  CHECK(cause.at("lost_a_peer") == false);
  CHECK(cause.at("tied_ranks") == json::value(json::array{6}));
  CHECK(cause.at("last_output") == "a\nb");
  CHECK(cause.at("hint").is_string());
  CHECK(cause.at("description") == "rank 5 (local rank 1, pid 4243) on beta was killed by SIGKILL");
}

TEST_CASE("verdict_json: what does not apply is left out") {
  Failure failure;
  failure.kind = FailureKind::node_lost;
  failure.host = "gamma";
  const json::object report = parsed({123, Verdict{123, "", failure, 0}}, {});
  const json::object& cause = report.at("first_cause").as_object();
  for (const char* name : {"rank", "local_rank", "pid", "exit_code", "signal", "ran_for_ms",
                           "peak_memory", "oom_killed", "oom_counter", "hint"}) {
    INFO(name);
    CHECK_FALSE(cause.contains(name));
  }
}

TEST_CASE("verdict_json: without a verdict the reason why this launcher left") {
  const json::object report = parsed({122, {}, "the coordinator was lost", "job", "alpha"}, {});
  CHECK(report.at("exit_code") == 122);
  CHECK(report.at("reason") == "the coordinator was lost");
  CHECK(report.at("first_cause").is_null());
}
