#include "rendezvous/core/restart_pause.h"

#include <catch2/catch.hpp>
#include <vector>

namespace ddp::rendezvous::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("restart pause: three quick failures cost no time, then it doubles up to the longest") {
  RestartPause pause(seconds(5));
  std::vector<milliseconds> pauses;
  for (int i = 0; i < 11; ++i) {
    pauses.push_back(std::chrono::duration_cast<milliseconds>(pause.after(milliseconds(20))));
  }
  const std::vector<std::int64_t> expected{0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(pauses[i].count() == expected[i]);
  }
}

TEST_CASE("restart pause: a round that ran long enough makes up for those before") {
  RestartPause pause(seconds(5));
  for (int i = 0; i < 8; ++i) (void)pause.after(seconds(5) - Duration(1));
  CHECK(pause.quick_failures() == 8);
  CHECK(pause.after(seconds(5)) == Duration{});
  for (int i = 0; i < 3; ++i) CHECK(pause.after(seconds(1)) == Duration{});
  CHECK(pause.after(seconds(1)) == milliseconds(100));
  pause.forgive(seconds(1));
  CHECK(pause.after(seconds(1)) == milliseconds(200));
  pause.forgive(seconds(6));
  CHECK(pause.after(seconds(1)) == Duration{});
}

TEST_CASE("restart pause: none, if the longest is nothing") {
  RestartPause pause(Duration{});
  for (int i = 0; i < 100; ++i) CHECK(pause.after(milliseconds(1)) == Duration{});
}

TEST_CASE("restart pause: it stays within bounds however often it fails") {
  RestartPause pause(std::chrono::hours(2));
  for (int i = 0; i < 10'000; ++i) {
    const Duration next = pause.after(milliseconds(1));
    CHECK_FALSE((next < Duration{} || next > std::chrono::hours(2)));
  }
}

}  // namespace ddp::rendezvous::test
