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
  for (std::uint64_t i = 1; i <= 3; ++i) newcomers.enter({i}, at(0));
  newcomers.advance({1}, Arrival::greeted, at(1));
  CHECK(newcomers.to_close(at(1)) == ConnectionId{2});
  newcomers.leave({2});
  CHECK(newcomers.to_close(at(1)) == ConnectionId{3});
}

TEST_CASE("newcomers: then the oldest undecided one, then who has only greeted") {
  Newcomers newcomers(seconds(0));
  for (std::uint64_t i = 1; i <= 4; ++i) newcomers.enter({i}, at(0));
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
  newcomers.enter({1}, at(0));
  newcomers.leave({1});
  newcomers.leave({1});
  newcomers.leave({7});
  CHECK(newcomers.to_close(at(9)) == std::nullopt);
}

TEST_CASE("newcomers: each has its time, also after it has come further") {
  Newcomers newcomers(seconds(2));
  newcomers.enter({1}, at(0));
  CHECK(newcomers.to_close(at(1)) == std::nullopt);
  CHECK(newcomers.to_close(at(2)) == ConnectionId{1});
  newcomers.advance({1}, Arrival::undecided, at(2));
  CHECK(newcomers.to_close(at(3)) == std::nullopt);
  CHECK(newcomers.to_close(at(4)) == ConnectionId{1});
}

TEST_CASE("newcomers: who has shown more isn't closed for a silent one that still has time") {
  Newcomers newcomers(seconds(2));
  newcomers.enter({1}, at(0));
  newcomers.advance({1}, Arrival::greeted, at(0));
  newcomers.enter({2}, at(9));
  CHECK(newcomers.to_close(at(10)) == std::nullopt);
  CHECK(newcomers.to_close(at(11)) == ConnectionId{2});
}

}  // namespace
}  // namespace ddp::rendezvous::test
