#include "rendezvous/core/rank_assignment.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ddp::rendezvous::test {
namespace {

SeatRequest request(const std::string& id, std::int32_t workers = 1,
                    std::optional<std::int32_t> node_rank = {},
                    std::optional<std::int32_t> previous_seat = {}) {
  return {NodeId{id}, workers, "default", node_rank, previous_seat};
}

std::string order_of(const Seating& seating) {
  std::string ids;
  for (const Seat& seat : seating.seats) ids += seat.id.value;
  return ids;
}

}  // namespace

TEST_CASE(
    "rank_assignment: without places of their own nodes sit in the order in which they came") {
  const Seating seating = assign_seats({request("c", 2), request("a", 3), request("b", 1)});
  CHECK(order_of(seating) == "cab");
  CHECK(seating.world_size == 6);
  CHECK(seating.seats[0].first_rank == Rank{0});
  CHECK(seating.seats[1].first_rank == Rank{2});
  CHECK(seating.seats[2].first_rank == Rank{5});
  CHECK(seating.seats[2].group_rank == GroupRank{2});
}

TEST_CASE("rank_assignment: a fixed place is kept whoever came first") {
  CHECK(order_of(assign_seats({request("b", 1, 1), request("a", 1, 0)})) == "ab");
  CHECK(order_of(assign_seats({request("x"), request("b", 1, 0), request("y")})) == "bxy");
}

TEST_CASE("rank_assignment: survivors keep their order, newcomers fill the gaps, no gap is left") {
  const auto was = [](const std::string& id, std::int32_t seat) {
    return request(id, 1, {}, seat);
  };
  CHECK(order_of(assign_seats({was("c", 2), was("a", 0), was("b", 1)})) == "abc");
  CHECK(order_of(assign_seats({was("d", 3), was("a", 0), was("c", 2)})) == "acd");
  CHECK(order_of(assign_seats({was("c", 2), was("a", 0), request("new")})) == "anewc");
  CHECK(order_of(assign_seats({was("b", 1), request("new")})) == "newb");
  CHECK(order_of(assign_seats({request("new"), request("more"), was("a", 0)})) == "anewmore");
}

TEST_CASE("rank_assignment: roles are counted apart") {
  SeatRequest reader = request("r", 2);
  reader.role = "reader";
  const Seating seating = assign_seats({request("a", 3), reader, request("b", 4)});
  CHECK(seating.seats[0].role_world_size == 7);
  CHECK(seating.seats[1].role_world_size == 2);
  CHECK(seating.seats[1].role_first_rank == Rank{0});
  CHECK(seating.seats[2].role_first_rank == Rank{3});
  CHECK(seating.seats[2].first_rank == Rank{5});
}

}  // namespace ddp::rendezvous::test
