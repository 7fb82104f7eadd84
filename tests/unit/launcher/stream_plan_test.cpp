#include "launcher/core/stream_plan.h"

#include <catch2/catch.hpp>

namespace {

using namespace ddp::launcher;

constexpr StreamFacts kLog{false, false, 1, 10};
constexpr StreamFacts kOtherLog{false, false, 1, 11};
constexpr StreamFacts kSameNumberElsewhere{false, false, 2, 10};
constexpr StreamFacts kReader{false, true, 3, 10};
constexpr StreamFacts kTerminal{true, false, 5, 3};
constexpr StreamFacts kOtherTerminal{true, false, 5, 4};

constexpr StreamRoute kInherited = StreamRoute::inherited;
constexpr StreamRoute kPipe = StreamRoute::pipe;
constexpr StreamRoute kOwnTerminal = StreamRoute::terminal;

}  // namespace

TEST_CASE("stream plan: one file behind both is one pipe, so that the order of lines stays") {
  CHECK(plan_streams(kLog, kLog) == StreamPlan{kPipe, kPipe, true, false});
}

TEST_CASE("stream plan: of two files only stderr is read") {
  CHECK(plan_streams(kLog, kOtherLog) == StreamPlan{kInherited, kPipe, false, false});
  CHECK(plan_streams(kLog, kSameNumberElsewhere) == StreamPlan{kInherited, kPipe, false, false});
}

TEST_CASE("stream plan: what is a terminal stays one") {
  CHECK(plan_streams(kTerminal, kTerminal) == StreamPlan{kOwnTerminal, kOwnTerminal, true, true});
  CHECK(plan_streams(kLog, kTerminal) == StreamPlan{kInherited, kOwnTerminal, false, true});
  CHECK(plan_streams(kTerminal, kLog) == StreamPlan{kOwnTerminal, kPipe, false, false});
}

TEST_CASE("stream plan: a terminal that may be written past us is not ours") {
  CHECK(plan_streams(kTerminal, kOtherTerminal) ==
        StreamPlan{kInherited, kOwnTerminal, false, false});
  CHECK(plan_streams(kReader, kTerminal) == StreamPlan{kInherited, kOwnTerminal, false, false});
}

TEST_CASE("stream plan: without pseudo terminals what would need one is inherited") {
  CHECK(without_terminals(plan_streams(kTerminal, kTerminal)) == StreamPlan{});
  CHECK(without_terminals(plan_streams(kLog, kTerminal)) == StreamPlan{});
  CHECK(without_terminals(plan_streams(kTerminal, kLog)) ==
        StreamPlan{kInherited, kPipe, false, false});
  CHECK(without_terminals(plan_streams(kLog, kLog)) == plan_streams(kLog, kLog));
}

TEST_CASE("stream plan: eight workers fit into 64 descriptors") {
  CHECK(descriptors_for(plan_streams(kLog, kOtherLog), 8) <= 64);
  CHECK(descriptors_for(plan_streams(kLog, kLog), 8) <= 64);
  CHECK(descriptors_for(plan_streams(kTerminal, kTerminal), 8) <= 64);
  CHECK(descriptors_for(StreamPlan{}, 8) < descriptors_for(plan_streams(kLog, kLog), 8));
  CHECK(descriptors_for(plan_streams(kLog, kLog), 8) <
        descriptors_for(plan_streams(kTerminal, kLog), 8));
}
