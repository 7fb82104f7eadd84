// The queues of a store: values in the order in which they were pushed, under names that have
// nothing to do with keys, and which sessions were woken to fetch one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rendezvous/core/store_basics.h"

namespace ddp::rendezvous {

// A session that was woken by a push usually pops next. It is remembered until it has asked for
// something, so that a value doesn't lie there unseen because whoever was woken for it has left or
// has given up in the same moment.
class StoreQueues {
 public:
  explicit StoreQueues(StoreBudget& budget) : budget_(budget) {}
  StoreQueues(const StoreQueues&) = delete;
  StoreQueues& operator=(const StoreQueues&) = delete;

  // False: no room, and nothing has changed.
  [[nodiscard]] bool push(std::string_view name, std::string_view value);
  // The oldest value, which is gone from the queue then; nothing from an empty one.
  [[nodiscard]] std::optional<std::string> pop(std::string_view name);
  [[nodiscard]] std::size_t size(std::string_view name) const;

  // The session has been woken because of a value in `name`.
  void promise(StoreSessionId session, std::string_view name);
  // The session pops from `name`, or asks for something else, or is gone (null). Returns the queue
  // in which a value lies now that nobody has been woken for.
  [[nodiscard]] std::optional<std::string> settle(StoreSessionId session,
                                                  const std::string_view* name);
  [[nodiscard]] bool nothing_promised() const { return promises_.empty(); }
  [[nodiscard]] std::size_t promised(std::string_view name) const;

  // What a queue costs beside its name, and each value beside its bytes; what it costs that a
  // session has been woken.
  static constexpr std::size_t kQueueCost = 128;
  static constexpr std::size_t kValueCost = 80;
  static constexpr std::size_t kPromiseCost = 96;

 private:
  struct Queue {
    std::list<std::string> values;
    std::size_t promised = 0;
  };
  // Neither is ever iterated. References to elements stay valid until they are erased.
  using Queues = std::unordered_map<std::string, Queue, StringHash, std::equal_to<>>;

  void drop_if_unused(Queues::iterator queue);

  StoreBudget& budget_;
  Queues queues_;
  std::unordered_map<std::uint64_t, Queues::value_type*> promises_;  // by session
};

}  // namespace ddp::rendezvous
