#include "rendezvous/core/newcomers.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>

namespace ddp::rendezvous::test {
namespace {

using std::chrono::seconds;

constexpr Instant kStart{};

Instant at(int second) {
  return kStart + seconds(second);
}

TEST_CASE("newcomers: the oldest that never spoke is closed first") {
  Newcomers newcomers(seconds(0));
  for (std::uint64_t i = 1; i <= 3; ++i) newcomers.enter({i}, {}, at(0));
  newcomers.advance({1}, Arrival::greeted, at(1));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{2});
  newcomers.leave({2});
  CHECK(newcomers.to_close(at(1)) == ConnectionId{3});
}

TEST_CASE("newcomers: then the oldest undecided one, then who has only greeted") {
  Newcomers newcomers(seconds(0));
  for (std::uint64_t i = 1; i <= 4; ++i) newcomers.enter({i}, {}, at(0));
  newcomers.advance({1}, Arrival::greeted, at(0));
  newcomers.advance({4}, Arrival::undecided, at(0));
  newcomers.advance({2}, Arrival::undecided, at(1));
  newcomers.leave({3});
  for (const std::uint64_t id : {2, 4, 1}) {
    CHECK(newcomers.to_close(at(1)) == ConnectionId{id});
    newcomers.leave({id});
  }
  CHECK(newcomers.to_close(at(1)) == std::nullopt);
}

TEST_CASE("newcomers: one that is in use, or gone, is not closed") {
  Newcomers newcomers(seconds(0));
  newcomers.enter({1}, {}, at(0));
  newcomers.leave({1});
  newcomers.leave({1});
  newcomers.leave({7});
  CHECK(newcomers.to_close(at(9)) == std::nullopt);
}

TEST_CASE("newcomers: each has its time, also after it has come further") {
  Newcomers newcomers(seconds(2));
  newcomers.enter({1}, {}, at(0));
  CHECK(newcomers.to_close(at(1)) == std::nullopt);
  CHECK(newcomers.to_close(at(2)) == ConnectionId{1});
  newcomers.advance({1}, Arrival::undecided, at(2));
  CHECK(newcomers.to_close(at(3)) == std::nullopt);
  CHECK(newcomers.to_close(at(4)) == ConnectionId{1});
}

TEST_CASE("newcomers: who has shown more isn't closed for a silent one that still has time") {
  Newcomers newcomers(seconds(2));
  newcomers.enter({1}, {}, at(0));
  newcomers.advance({1}, Arrival::greeted, at(0));
  newcomers.enter({2}, {}, at(9));
  CHECK(newcomers.to_close(at(10)) == std::nullopt);
  CHECK(newcomers.to_close(at(11)) == ConnectionId{2});
}

constexpr PeerAddress kHere{{1}};
constexpr PeerAddress kThere{{2}};

TEST_CASE("newcomers: the silent connection behind one in use is its companion") {
  const bool came_before_the_first_request = GENERATE(true, false);
  Newcomers newcomers(seconds(0));
  newcomers.enter({1}, kHere, at(0));  // silent from the start: nobody's
  newcomers.enter({2}, kHere, at(0));
  newcomers.enter({3}, kThere, at(0));
  if (came_before_the_first_request) newcomers.enter({4}, kHere, at(0));
  newcomers.put_in_use({2}, true);
  newcomers.enter({5}, kHere, at(0));
  newcomers.enter({6}, kHere, at(0));
  const std::uint64_t companion = came_before_the_first_request ? 4 : 5;
  for (const std::uint64_t id : {1, 3, 5, 6}) {
    if (id == companion) continue;
    CHECK(newcomers.to_close(at(1)) == ConnectionId{id});
    newcomers.leave({id});
  }
  CHECK(newcomers.to_close(at(1)) == std::nullopt);
  newcomers.leave({2});  // and it is nobody's again
  CHECK(newcomers.to_close(at(1)) == ConnectionId{companion});
}

TEST_CASE("newcomers: clients that all connect before the companions come have one each") {
  Newcomers newcomers(seconds(0));
  for (std::uint64_t i = 1; i <= 3; ++i) newcomers.enter({i}, kHere, at(0));
  for (std::uint64_t i = 1; i <= 3; ++i) newcomers.put_in_use({i}, true);
  for (std::uint64_t i = 4; i <= 7; ++i) newcomers.enter({i}, kHere, at(0));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{7});
  newcomers.leave({7});
  CHECK(newcomers.to_close(at(1)) == std::nullopt);
  newcomers.leave({2});
  CHECK(newcomers.to_close(at(1)) == ConnectionId{6});
  newcomers.leave({4});  // gives its place up
  newcomers.enter({8}, kHere, at(1));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{6});
  newcomers.leave({6});
  CHECK(newcomers.to_close(at(1)) == std::nullopt);
}

TEST_CASE("newcomers: one that was taken for a companion and speaks is a client of its own") {
  Newcomers newcomers(seconds(0));
  newcomers.enter({1}, kHere, at(0));
  newcomers.put_in_use({1}, true);
  newcomers.enter({2}, kHere, at(0));
  newcomers.advance({2}, Arrival::greeted, at(0));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{2});
  newcomers.put_in_use({2}, true);
  for (const std::uint64_t id : {3, 4, 5}) newcomers.enter({id}, kHere, at(0));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{5});
}

TEST_CASE("newcomers: who needs no companion has none") {
  Newcomers newcomers(seconds(0));
  newcomers.enter({1}, kHere, at(0));
  newcomers.put_in_use({1}, false);
  newcomers.enter({2}, kHere, at(0));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{2});
}

}  // namespace
}  // namespace ddp::rendezvous::test
