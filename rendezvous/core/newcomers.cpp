#include "rendezvous/core/newcomers.h"

namespace ddp::rendezvous {

void Newcomers::enter(ConnectionId connection, Instant now) {
  since_[static_cast<std::size_t>(Arrival::silent)].emplace(connection, now);
}

void Newcomers::advance(ConnectionId connection, Arrival arrival, Instant now) {
  leave(connection);
  since_[static_cast<std::size_t>(arrival)].emplace(connection, now);
}

void Newcomers::leave(ConnectionId connection) {
  for (auto& stage : since_) {
    if (stage.erase(connection) > 0) return;
  }
}

std::optional<ConnectionId> Newcomers::to_close(Instant now) const {
  for (const auto& stage : since_) {
    if (stage.empty()) continue;
    // If the first of them must still be given time, those who have shown more are none the worse.
    const auto& [connection, since] = *stage.begin();
    if (now - since < grace_) return std::nullopt;
    return connection;
  }
  return std::nullopt;
}

}  // namespace ddp::rendezvous
