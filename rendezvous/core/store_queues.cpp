#include "rendezvous/core/store_queues.h"

#include <utility>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {

bool StoreQueues::push(std::string_view name, std::string_view value) {
  auto found = queues_.find(name);
  std::size_t cost = value.size() + kValueCost;
  if (found == queues_.end()) cost += name.size() + kQueueCost;
  if (!budget_.has_room(cost)) return false;
  budget_.charge(cost);
  if (found == queues_.end()) found = queues_.try_emplace(std::string{name}).first;
  found->second.values.emplace_back(value);
  return true;
}

std::optional<std::string> StoreQueues::pop(std::string_view name) {
  const auto found = queues_.find(name);
  if (found == queues_.end() || found->second.values.empty()) return std::nullopt;
  std::string value = std::move(found->second.values.front());
  found->second.values.pop_front();
  budget_.release(value.size() + kValueCost);
  drop_if_unused(found);
  return value;
}

std::size_t StoreQueues::size(std::string_view name) const {
  const auto found = queues_.find(name);
  return found == queues_.end() ? 0 : found->second.values.size();
}

void StoreQueues::promise(StoreSessionId session, std::string_view name) {
  const auto found = queues_.find(name);
  DDP_ASSERT(found != queues_.end());
  const bool is_new = promises_.emplace(session.value, &*found).second;
  DDP_ASSERT(is_new);
  budget_.charge(kPromiseCost);
  ++found->second.promised;
}

std::optional<std::string> StoreQueues::settle(StoreSessionId session,
                                               const std::string_view* name) {
  const auto promise = promises_.find(session.value);
  if (promise == promises_.end()) return std::nullopt;
  const auto queue = queues_.find(promise->second->first);
  promises_.erase(promise);
  budget_.release(kPromiseCost);
  --queue->second.promised;
  const bool taken = name != nullptr && *name == queue->first;
  if (!taken && queue->second.values.size() > queue->second.promised) return queue->first;
  drop_if_unused(queue);
  return std::nullopt;
}

std::size_t StoreQueues::promised(std::string_view name) const {
  const auto found = queues_.find(name);
  return found == queues_.end() ? 0 : found->second.promised;
}

void StoreQueues::drop_if_unused(Queues::iterator queue) {
  if (!queue->second.values.empty() || queue->second.promised > 0) return;
  budget_.release(queue->first.size() + kQueueCost);
  queues_.erase(queue);
}

}  // namespace ddp::rendezvous
