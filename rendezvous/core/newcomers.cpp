#include "rendezvous/core/newcomers.h"

#include <iterator>
#include <utility>

namespace ddp::rendezvous {

void Newcomers::enter(ConnectionId connection, const PeerAddress& from, Instant now) {
  const auto place = stage(Arrival::silent).emplace(connection, Newcomer{from, now}).first;
  const auto company = companies_.find(from);
  if (company != companies_.end()) adopt(place, company->second);
}

void Newcomers::advance(ConnectionId connection, Arrival arrival, Instant now) {
  auto newcomer = take_out(connection);
  if (!newcomer) return;
  newcomer->since = now;
  stage(arrival).emplace(connection, *newcomer);
}

void Newcomers::put_in_use(ConnectionId connection, bool has_companion) {
  const auto newcomer = take_out(connection);
  if (!newcomer || !has_companion) return;
  clients_.emplace(connection.value, newcomer->from);
  Company& company = companies_[newcomer->from];
  ++company.clients;
  // It may be there already.
  Stage& silent = stage(Arrival::silent);
  for (auto at = silent.upper_bound(connection); at != silent.end(); ++at) {
    if (at->second.from == newcomer->from) return adopt(at, company);
  }
}

void Newcomers::leave(ConnectionId connection) {
  const auto client = clients_.find(connection.value);
  if (client == clients_.end()) {
    take_out(connection);
    return;
  }
  const auto found = companies_.find(client->second);
  clients_.erase(client);
  Company& company = found->second;
  --company.clients;
  if (company.companions.size() > company.clients) {
    const ConnectionId left_over = *company.companions.rbegin();
    const auto newcomer = take_out(left_over);
    if (newcomer) stage(Arrival::silent).emplace(left_over, *newcomer);
  }
  if (company.clients == 0) companies_.erase(found);
}

std::optional<ConnectionId> Newcomers::to_close(Instant now) const {
  for (const Stage& stage : stages_) {
    if (stage.empty()) continue;
    // If the first of them must still be given time, those who have shown more are none the worse.
    const auto& [connection, newcomer] = *stage.begin();
    if (now - newcomer.since < grace_) return std::nullopt;
    return connection;
  }
  return std::nullopt;
}

std::optional<Newcomers::Newcomer> Newcomers::take_out(ConnectionId connection) {
  for (Stage& stage : stages_) {
    if (const auto node = stage.extract(connection)) return node.mapped();
  }
  const auto node = companions_.extract(connection);
  if (!node) return std::nullopt;
  companies_.at(node.mapped().from).companions.erase(connection);
  return node.mapped();
}

// If one of the clients lacks a companion.
void Newcomers::adopt(Stage::iterator silent, Company& company) {
  if (company.companions.size() == company.clients) return;
  company.companions.insert(silent->first);
  companions_.insert(stage(Arrival::silent).extract(silent));
}

}  // namespace ddp::rendezvous
