#include "rendezvous/core/store_watches.h"

#include <algorithm>

namespace ddp::rendezvous {

bool StoreWatches::add(StoreSessionId session, std::string_view key) {
  auto found = by_key_.find(key);
  if (found != by_key_.end() && std::count(found->second.begin(), found->second.end(), session)) {
    return true;
  }
  if (!budget_.has_room(cost(key))) return false;
  budget_.charge(cost(key));
  if (found == by_key_.end()) found = by_key_.try_emplace(std::string{key}).first;
  found->second.push_back(session);
  by_session_[session.value].emplace_back(key);
  return true;
}

void StoreWatches::forget(StoreSessionId session) {
  const auto watching = by_session_.find(session.value);
  if (watching == by_session_.end()) return;
  for (const std::string& key : watching->second) {
    budget_.release(cost(key));
    const auto found = by_key_.find(key);
    auto& sessions = found->second;
    sessions.erase(std::find(sessions.begin(), sessions.end(), session));
    if (sessions.empty()) by_key_.erase(found);
  }
  by_session_.erase(watching);
}

const std::vector<StoreSessionId>* StoreWatches::watchers(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &found->second;
}

}  // namespace ddp::rendezvous
