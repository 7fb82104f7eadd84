#include "rendezvous/core/rank_assignment.h"

#include <map>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {
namespace {

using SeatMap = std::map<std::int32_t, const SeatRequest*>;

SeatMap choose_seats(const std::vector<SeatRequest>& requests) {
  SeatMap taken;
  std::vector<const SeatRequest*> newcomers;
  for (const SeatRequest& request : requests) {
    if (!request.node_rank) continue;
    const bool free = taken.emplace(*request.node_rank, &request).second;
    DDP_ASSERT(free);
  }
  for (const SeatRequest& request : requests) {
    if (request.node_rank) continue;
    const bool kept =
        request.previous_seat && taken.emplace(*request.previous_seat, &request).second;
    if (!kept) newcomers.push_back(&request);
  }
  std::int32_t seat = 0;
  for (const SeatRequest* request : newcomers) {
    while (taken.count(seat) != 0) ++seat;
    taken.emplace(seat, request);
  }
  return taken;
}

}  // namespace

Seating assign_seats(const std::vector<SeatRequest>& requests) {
  Seating seating;
  std::map<std::string, std::int32_t> of_role;
  for (const auto& [place, request] : choose_seats(requests)) {
    Seat seat;
    seat.id = request->id;
    seat.workers = request->workers;
    seat.group_rank.value = static_cast<std::int32_t>(seating.seats.size());
    seat.first_rank.value = seating.world_size;
    seat.role_first_rank.value = of_role[request->role];
    of_role[request->role] += request->workers;
    seating.world_size += request->workers;
    seating.seats.push_back(std::move(seat));
  }
  std::map<NodeId, const SeatRequest*> by_id;
  for (const SeatRequest& request : requests) by_id.emplace(request.id, &request);
  for (Seat& seat : seating.seats) seat.role_world_size = of_role[by_id.at(seat.id)->role];
  return seating;
}

}  // namespace ddp::rendezvous
