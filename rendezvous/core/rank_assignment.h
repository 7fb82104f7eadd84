// Who gets which ranks in a round: the only place where ranks are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/membership.h"

namespace ddp::rendezvous {

struct SeatRequest {
  NodeId id;
  std::int32_t workers = 1;
  std::string role;
  std::optional<std::int32_t> node_rank;      // fixed by the user; distinct among the requests
  std::optional<std::int32_t> previous_seat;  // its group rank in the round before
};

struct Seat {
  NodeId id;
  std::int32_t workers = 1;
  GroupRank group_rank;
  Rank first_rank;
  Rank role_first_rank;
  std::int32_t role_world_size = 0;
};

struct Seating {
  std::vector<Seat> seats;  // by group rank
  std::int32_t world_size = 0;
};

// `requests` in the order in which the nodes came. Fixed places first; then whoever had a place
// keeps it; newcomers fill the gaps; what is still empty is closed up, so that group ranks and
// ranks are dense and survivors keep their order.
[[nodiscard]] Seating assign_seats(const std::vector<SeatRequest>& requests);

}  // namespace ddp::rendezvous
