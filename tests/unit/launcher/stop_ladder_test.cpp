#include "launcher/core/stop_ladder.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

namespace {

using namespace ddp::launcher;
using ddp::rendezvous::Instant;
using ddp::rendezvous::LocalRank;
using std::chrono::seconds;

std::string show(const std::vector<StopEffect>& effects) {
  std::string text;
  for (const StopEffect& effect : effects) {
    if (const auto* send = std::get_if<SendSignal>(&effect)) {
      text += std::to_string(send->local_rank.value) + ":" + std::to_string(send->signal) + " ";
    } else {
      text += std::to_string(std::get<SendKill>(effect).local_rank.value) + ":kill ";
    }
  }
  return text;
}

const std::vector<LocalRank> kTwo{LocalRank{0}, LocalRank{2}};
const Instant kStart{seconds(100)};

}  // namespace

TEST_CASE("stop ladder: signals all, then wakes those that are stopped") {
  StopLadder ladder(seconds(30));
  CHECK(show(ladder.begin(kTwo, SIGTERM, kStart)) == "0:15 2:15 0:18 2:18 ");
  CHECK(ladder.active());
  CHECK(ladder.next_deadline() == kStart + seconds(30));
}

TEST_CASE("stop ladder: kills those still alive after the grace period, once") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  ladder.exited(LocalRank{0});
  CHECK(ladder.on_time(kStart + seconds(30) - std::chrono::nanoseconds(1)).empty());
  CHECK(show(ladder.on_time(kStart + seconds(30))) == "2:kill ");
  CHECK(ladder.next_deadline() == std::nullopt);
  CHECK(ladder.on_time(kStart + seconds(60)).empty());
  CHECK(ladder.hurry().empty());
}

TEST_CASE("stop ladder: ends when all have exited") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  ladder.exited(LocalRank{0});
  CHECK(ladder.active());
  ladder.exited(LocalRank{2});
  CHECK_FALSE(ladder.active());
}

TEST_CASE("stop ladder: what those left that obeyed has the rest of the period") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  ladder.exited(LocalRank{1});  // was not told to
  ladder.exited(LocalRank{2});
  ladder.exited(LocalRank{0});
  CHECK(ladder.obeyed() == std::vector{LocalRank{2}, LocalRank{0}});
  CHECK(ladder.next_deadline() == kStart + seconds(30));
  CHECK(ladder.on_time(kStart + seconds(30)).empty());
  CHECK(ladder.obeyed().empty());
  CHECK(ladder.next_deadline() == std::nullopt);
}

TEST_CASE("stop ladder: nobody obeys SIGKILL") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  ladder.exited(LocalRank{0});
  (void)ladder.hurry();
  ladder.exited(LocalRank{2});
  CHECK(ladder.obeyed().empty());
  CHECK(ladder.next_deadline() == std::nullopt);
}

TEST_CASE("stop ladder: hurried, it kills at once") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGINT, kStart);
  CHECK(show(ladder.hurry()) == "0:kill 2:kill ");
  CHECK(ladder.next_deadline() == std::nullopt);
}

TEST_CASE("stop ladder: another signal is passed on without more time") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  CHECK(show(ladder.begin(kTwo, SIGINT, kStart + seconds(20))) == "0:2 2:2 0:18 2:18 ");
  CHECK(ladder.next_deadline() == kStart + seconds(30));
}

TEST_CASE("stop ladder: a grace period of zero kills at the next look") {
  StopLadder ladder(seconds(0));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  CHECK(show(ladder.on_time(kStart)) == "0:kill 2:kill ");
}

TEST_CASE("stop ladder: while it is paused the grace period stands still") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  ladder.pause(kStart + seconds(20));
  CHECK(ladder.next_deadline() == std::nullopt);
  CHECK(ladder.on_time(kStart + seconds(500)).empty());
  ladder.resume(kStart + seconds(1000));
  CHECK(ladder.next_deadline() == kStart + seconds(1010));
  ladder.resume(kStart + seconds(1005));
  CHECK(ladder.next_deadline() == kStart + seconds(1010));
}

TEST_CASE("stop ladder: paused, it still kills when hurried") {
  StopLadder ladder(seconds(30));
  (void)ladder.begin(kTwo, SIGTERM, kStart);
  ladder.pause(kStart);
  CHECK(show(ladder.hurry()) == "0:kill 2:kill ");
  ladder.resume(kStart + seconds(1));
  CHECK(ladder.next_deadline() == std::nullopt);
}

TEST_CASE("stop ladder: nobody alive, nothing to do") {
  StopLadder ladder(seconds(30));
  CHECK(ladder.begin({}, SIGTERM, kStart).empty());
  CHECK_FALSE(ladder.active());
  CHECK(ladder.hurry().empty());
}
