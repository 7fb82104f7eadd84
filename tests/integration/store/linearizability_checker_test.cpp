// The checker itself: histories that one client could have seen, and planted ones that none could.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/integration/store/history.h"

namespace ddp::store_test {
namespace {

using History = std::vector<Operation>;

Operation during(Time invoked, Time returned, Operation operation) {
  operation.invoked = invoked;
  operation.returned = returned;
  operation.outcome = Outcome::answered;
  return operation;
}
// The client left: no answer, ever.
Operation from(Time invoked, Operation operation) {
  operation.invoked = invoked;
  return operation;
}
Operation closed(Operation operation) {
  operation.outcome = Outcome::closed;
  return operation;
}

Operation set(std::string value) {
  return {.kind = Kind::set, .argument = std::move(value)};
}
Operation append(std::string value) {
  return {.kind = Kind::append, .argument = std::move(value)};
}
Operation get(std::string value) {
  return {.kind = Kind::get, .value = std::move(value)};
}
Operation add(std::int64_t difference, std::int64_t sum) {
  return {.kind = Kind::add, .number = difference, .count = sum};
}
Operation compare_set(std::string expected, std::string desired, std::string there) {
  return {.kind = Kind::compare_set,
          .argument = std::move(expected),
          .desired = std::move(desired),
          .value = std::move(there)};
}
Operation remove(std::int64_t existed) {
  return {.kind = Kind::remove, .count = existed};
}
Operation push(std::string value) {
  return {.kind = Kind::push, .argument = std::move(value)};
}
Operation pop(std::int64_t length, std::string value) {
  return {.kind = Kind::pop, .value = std::move(value), .count = length};
}
Operation of(Kind kind, std::int64_t number = 0) {
  return {.kind = kind, .number = number};
}
Operation check(bool exists) {
  return {.kind = Kind::check, .count = exists ? 0 : 1};
}

TEST_CASE("linearizability: histories of one client after the other") {
  CHECK(is_linearizable({}));
  CHECK(is_linearizable({during(1, 2, get("")), during(3, 4, set("a")), during(5, 6, get("a")),
                         during(7, 8, append("b")), during(9, 10, get("ab")),
                         during(11, 12, remove(1)), during(13, 14, remove(0)),
                         during(15, 16, add(5, 5)), during(17, 18, add(-7, -2))}));
  CHECK(
      is_linearizable({during(1, 2, push("x")), during(3, 4, push("y")), during(5, 6, check(true)),
                       during(7, 8, pop(2, "x")), during(9, 10, pop(1, "y")),
                       during(11, 12, pop(0, "")), during(13, 14, check(false))}));
  CHECK(is_linearizable(
      {during(1, 2, compare_set("no", "b", "no")), during(3, 4, compare_set("", "b", "b")),
       during(5, 6, compare_set("x", "c", "b")), during(7, 8, compare_set("b", "c", "c"))}));
}

TEST_CASE("linearizability: of overlapping operations any order will do") {
  CHECK(
      is_linearizable({during(1, 9, set("a")), during(2, 8, set("b")), during(10, 11, get("a"))}));
  CHECK(
      is_linearizable({during(1, 9, set("a")), during(2, 8, set("b")), during(10, 11, get("b"))}));
  CHECK(
      is_linearizable({during(1, 9, add(1, 2)), during(2, 8, add(1, 1)), during(3, 7, add(1, 3))}));
  CHECK(is_linearizable({during(1, 9, set("a")), during(2, 3, get("")), during(4, 5, get("a"))}));
}

TEST_CASE("linearizability: a stale read, a lost write, a value from nowhere") {
  CHECK_FALSE(
      is_linearizable({during(1, 2, set("a")), during(3, 4, set("b")), during(5, 6, get("a"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, set("a")), during(3, 4, get(""))}));
  CHECK_FALSE(is_linearizable({during(1, 2, set("a")), during(3, 4, get("c"))}));
  // Seen, and then not any more, while the write was still on its way.
  CHECK_FALSE(
      is_linearizable({during(1, 9, set("a")), during(2, 3, get("a")), during(4, 5, get(""))}));
}

TEST_CASE("linearizability: two that both won, an addition lost or done twice") {
  CHECK_FALSE(is_linearizable({during(1, 9, add(1, 1)), during(2, 8, add(1, 1))}));
  CHECK_FALSE(is_linearizable({during(1, 2, add(1, 1)), during(3, 4, get("2"))}));
  CHECK_FALSE(is_linearizable(
      {during(1, 9, compare_set("", "a", "a")), during(2, 8, compare_set("", "b", "b"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, append("x")), during(3, 4, get("xx"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, remove(1))}));
}

TEST_CASE("linearizability: a queue that turns round, repeats, forgets or miscounts") {
  const History pushed{during(1, 2, push("x")), during(3, 4, push("y"))};
  const auto then = [&](const History& more) {
    History all = pushed;
    all.insert(all.end(), more.begin(), more.end());
    return is_linearizable(all);
  };
  CHECK(then({during(5, 9, pop(1, "y")), during(6, 8, pop(2, "x"))}));
  CHECK_FALSE(then({during(5, 6, pop(2, "y"))}));
  CHECK_FALSE(then({during(5, 6, pop(2, "x")), during(7, 8, pop(1, "x"))}));
  CHECK_FALSE(then({during(5, 6, pop(0, ""))}));
  CHECK_FALSE(then({during(5, 6, pop(1, "x"))}));
  CHECK_FALSE(then({during(5, 6, {.kind = Kind::length, .count = 1})}));
  CHECK_FALSE(then({during(5, 6, check(false))}));
}

TEST_CASE("linearizability: a wait that ends too early, or not when it should") {
  CHECK(is_linearizable(
      {during(1, 9, of(Kind::wait)), during(2, 3, set("a")), during(4, 5, remove(1))}));
  CHECK(is_linearizable({during(1, 9, of(Kind::wait)), during(2, 3, push("a"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, of(Kind::wait)), during(3, 4, set("a"))}));
  CHECK(is_linearizable({during(1, 3, of(Kind::wait_cancelled)), during(2, 4, set("a"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, set("a")), during(3, 4, of(Kind::wait_cancelled))}));
}

TEST_CASE("linearizability: a barrier that opens too early, or not when it should") {
  const auto barrier = [](Time invoked, Time returned, Kind end) {
    return History{during(invoked, returned, of(Kind::arrive, 2)),
                   during(invoked, returned, of(end, 2))};
  };
  const auto both = [](History first, const History& second) {
    first.insert(first.end(), second.begin(), second.end());
    return is_linearizable(first);
  };
  CHECK(both(barrier(1, 9, Kind::pass), barrier(2, 8, Kind::pass)));
  CHECK(both(barrier(1, 3, Kind::not_passed), barrier(2, 8, Kind::pass)));
  CHECK_FALSE(is_linearizable(barrier(1, 2, Kind::pass)));
  CHECK_FALSE(both(barrier(1, 2, Kind::pass), barrier(3, 8, Kind::pass)));
  // Arrival and end are looked at apart; so it takes a third to see that they are too late.
  CHECK_FALSE(is_linearizable({during(1, 2, of(Kind::arrive, 2)), during(3, 4, of(Kind::arrive, 2)),
                               during(5, 6, of(Kind::not_passed, 2))}));
}

TEST_CASE("linearizability: without an answer it may have happened, at any time, or not at all") {
  for (const char* seen : {"", "a"}) {
    CHECK(is_linearizable({from(1, set("a")), during(5, 6, get(seen))}));
  }
  CHECK(is_linearizable({from(1, set("a")), during(2, 3, get("")), during(4, 5, get("a"))}));
  CHECK(is_linearizable(
      {from(1, set("a")), from(1, set("b")), during(2, 3, get("b")), during(4, 5, get("a"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, get("a")), from(3, set("a"))}));
  CHECK_FALSE(is_linearizable({from(1, add(1, 0)), during(2, 3, add(1, 3))}));
  CHECK_FALSE(is_linearizable(
      {from(1, set("a")), during(2, 3, get("a")), during(4, 5, set("b")), during(6, 7, get("a"))}));
}

TEST_CASE("linearizability: a closed connection is an answer too") {
  Operation legacy_get = get("");
  legacy_get.legacy = true;
  const auto refused = [](Time invoked, Time returned, const Operation& operation) {
    return closed(during(invoked, returned, operation));
  };
  CHECK(is_linearizable(
      {during(1, 2, set("text")), refused(3, 4, add(1, 0)), during(5, 6, get("text"))}));
  CHECK_FALSE(is_linearizable({during(1, 2, set("5")), refused(3, 4, add(1, 0))}));
  CHECK(is_linearizable({refused(1, 2, legacy_get)}));
  CHECK_FALSE(is_linearizable({during(1, 2, set("v")), refused(3, 4, legacy_get)}));
  CHECK_FALSE(is_linearizable({refused(1, 2, get(""))}));
}

TEST_CASE("linearizability: a long history with some that left is decided all the same") {
  History history;
  for (int i = 0; i < 300; ++i) {
    const Time at = 10 * i;
    if (i % 50 == 0) history.push_back(from(at, set("left" + std::to_string(i))));
    history.push_back(during(at + 1, at + 8, set(std::to_string(i))));
    history.push_back(during(
        at + 1, at + 9, get(i % 50 == 10 ? "left" + std::to_string(i - 10) : std::to_string(i))));
  }
  CHECK(is_linearizable(history));
  history.push_back(during(9000, 9001, get("nobody wrote this")));
  CHECK_FALSE(is_linearizable(history));
}

}  // namespace
}  // namespace ddp::store_test
