#include "rendezvous/core/store_waits.h"

#include <iterator>
#include <utility>

#include "rendezvous/core/result.h"

namespace ddp::rendezvous {

bool StoreWaits::has_room(std::span<const std::string_view> names, std::size_t more) const {
  std::size_t cost = more;
  for (const std::string_view name : names) cost += name.size() + kNameCost + kWaitCost;
  return budget_.has_room(cost);
}

void StoreWaits::wait_for_all(StoreSessionId session, std::span<const std::string_view> names) {
  DDP_ASSERT(!names.empty());
  cancel(session);
  Wait& wait = waits_[session.value];
  wait.registrations.reserve(names.size());
  for (const std::string_view name : names) enter(wait, session, name);
}

void StoreWaits::wait_for_number(StoreSessionId session, std::string_view name,
                                 std::int64_t enough) {
  cancel(session);
  Wait& wait = waits_[session.value];
  wait.enough = enough;
  enter(wait, session, name);
}

void StoreWaits::enter(Wait& wait, StoreSessionId session, std::string_view name) {
  auto found = names_.find(name);
  if (found == names_.end()) {
    found = names_.emplace(std::string{name}, Waited{}).first;
    budget_.charge(name.size() + kNameCost);
  }
  budget_.charge(kWaitCost);
  Waited& waited = found->second;
  Waiters& waiters = wait.enough ? waited.for_number[*wait.enough] : waited.for_value;
  waiters.push_back({session, wait.registrations.size()});
  wait.registrations.push_back({&*found, std::prev(waiters.end())});
  ++wait.missing;
}

void StoreWaits::cancel(StoreSessionId session) {
  const auto found = waits_.find(session.value);
  if (found == waits_.end()) return;
  const Wait wait = std::move(found->second);
  waits_.erase(found);
  budget_.release(kWaitCost * wait.registrations.size());
  for (const Registration& registration : wait.registrations) {
    if (registration.met) continue;
    Waited& waited = registration.name->second;
    if (wait.enough) {
      const auto level = waited.for_number.find(*wait.enough);
      level->second.erase(registration.place);
      if (level->second.empty()) waited.for_number.erase(level);
    } else {
      waited.for_value.erase(registration.place);
    }
    drop_if_unused(*registration.name);
  }
}

void StoreWaits::value_set(std::string_view name, std::string_view value,
                           std::vector<StoreSessionId>& woken) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  Waited& waited = found->second;
  const Waiters waiters = std::exchange(waited.for_value, {});
  for (const Waiter& waiter : waiters) {
    if (meet(waiter)) woken.push_back(waiter.session);
  }
  if (!waited.for_number.empty()) {
    const auto number = parse_decimal(value);
    while (number && !waited.for_number.empty() && waited.for_number.begin()->first <= *number) {
      const auto arrived = waited.for_number.extract(waited.for_number.begin());
      for (const Waiter& waiter : arrived.mapped()) {
        if (meet(waiter)) woken.push_back(waiter.session);
      }
    }
  }
  drop_if_unused(*found);
}

std::optional<StoreSessionId> StoreWaits::pushed(std::string_view name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return std::nullopt;
  Waiters& waiters = found->second.for_value;
  std::optional<StoreSessionId> woken;
  while (!woken && !waiters.empty()) {
    const Waiter waiter = waiters.front();
    waiters.pop_front();
    if (meet(waiter)) woken = waiter.session;
  }
  drop_if_unused(*found);
  return woken;
}

bool StoreWaits::meet(const Waiter& waiter) {
  const auto found = waits_.find(waiter.session.value);
  DDP_ASSERT(found != waits_.end());
  Wait& wait = found->second;
  wait.registrations[waiter.registration].met = true;
  if (--wait.missing > 0) return false;
  budget_.release(kWaitCost * wait.registrations.size());
  waits_.erase(found);
  return true;
}

void StoreWaits::drop_if_unused(Name& name) {
  if (!name.second.unused()) return;
  budget_.release(name.first.size() + kNameCost);
  names_.erase(names_.find(name.first));
}

}  // namespace ddp::rendezvous
