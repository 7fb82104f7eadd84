// Which sessions of a store wait, for which names, and whose wait is over: WAIT, BARRIER, and the
// wake-ups of queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/store_basics.h"

namespace ddp::rendezvous {

// A session waits for one thing at a time. Whoever is woken waits for nothing any more. `woken`
// is only appended to, in the order in which the sessions came.
class StoreWaits {
 public:
  explicit StoreWaits(StoreBudget& budget) : budget_(budget) {}
  StoreWaits(const StoreWaits&) = delete;
  StoreWaits& operator=(const StoreWaits&) = delete;

  // Whether the budget has room for one more wait for these names beside `more` bytes.
  [[nodiscard]] bool has_room(std::span<const std::string_view> names, std::size_t more) const;

  // WAIT: over when each of these has been set or pushed to since. Takes the place of what the
  // session waited for. A name that occurs twice is met twice at once.
  void wait_for_all(StoreSessionId session, std::span<const std::string_view> names);
  // BARRIER: over when the number kept at `name` is `enough` or more.
  void wait_for_number(StoreSessionId session, std::string_view name, std::int64_t enough);
  void cancel(StoreSessionId session);

  // `name` has this value now.
  void value_set(std::string_view name, std::string_view value, std::vector<StoreSessionId>& woken);
  // One more value lies in the queue `name`: ends the wait of the first session that lacks
  // nothing else. Returns who that is.
  [[nodiscard]] std::optional<StoreSessionId> pushed(std::string_view name);

  [[nodiscard]] bool empty() const { return waits_.empty(); }
  [[nodiscard]] bool is_waiting(StoreSessionId session) const {
    return waits_.contains(session.value);
  }

  // What a name that is waited for costs beside its bytes, and each wait for one.
  static constexpr std::size_t kNameCost = 192;
  static constexpr std::size_t kWaitCost = 160;

 private:
  struct Waiter {
    StoreSessionId session;
    std::size_t registration;  // index into Wait::registrations
  };
  using Waiters = std::list<Waiter>;
  struct Waited {
    Waiters for_value;
    std::map<std::int64_t, Waiters> for_number;
    [[nodiscard]] bool unused() const { return for_value.empty() && for_number.empty(); }
  };
  // Neither is ever iterated. References to elements stay valid until they are erased.
  using Names = std::unordered_map<std::string, Waited, StringHash, std::equal_to<>>;
  using Name = Names::value_type;
  struct Registration {
    Name* name;
    Waiters::iterator place;
    bool met = false;
  };
  struct Wait {
    std::size_t missing = 0;
    std::optional<std::int64_t> enough;
    std::vector<Registration> registrations;
  };

  void enter(Wait& wait, StoreSessionId session, std::string_view name);
  // True: that was the last thing the session lacked, and it waits no more.
  bool meet(const Waiter& waiter);
  void drop_if_unused(Name& name);

  StoreBudget& budget_;
  Names names_;
  std::unordered_map<std::uint64_t, Wait> waits_;  // by session
};

}  // namespace ddp::rendezvous
