// Which sessions of a store are told of every change of which keys (dialect A's WATCH_KEY).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/store_basics.h"

namespace ddp::rendezvous {

class StoreWatches {
 public:
  explicit StoreWatches(StoreBudget& budget) : budget_(budget) {}
  StoreWatches(const StoreWatches&) = delete;
  StoreWatches& operator=(const StoreWatches&) = delete;

  // Watching a key twice is watching it once. False: no room, and nothing has changed.
  [[nodiscard]] bool add(StoreSessionId session, std::string_view key);
  void forget(StoreSessionId session);

  [[nodiscard]] bool empty() const { return by_session_.empty(); }
  // In the order in which they came; null: nobody.
  [[nodiscard]] const std::vector<StoreSessionId>* watchers(std::string_view key) const;

  // What one session that watches one key costs beside the key, whose bytes are kept twice.
  static constexpr std::size_t kWatchCost = 192;

 private:
  static std::size_t cost(std::string_view key) { return 2 * key.size() + kWatchCost; }

  StoreBudget& budget_;
  // Neither is ever iterated.
  std::unordered_map<std::string, std::vector<StoreSessionId>, StringHash, std::equal_to<>> by_key_;
  std::unordered_map<std::uint64_t, std::vector<std::string>> by_session_;
};

}  // namespace ddp::rendezvous
