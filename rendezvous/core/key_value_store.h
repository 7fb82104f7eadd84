// The worker store as a machine: a session's request goes in; its reply, and what others are sent,
// come out.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/store_basics.h"
#include "rendezvous/core/store_queues.h"
#include "rendezvous/core/store_waits.h"
#include "rendezvous/core/store_watches.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {

// Keys of the agent's notices begin so. Found by GET, WAIT, CHECK, MULTI_GET and WATCH_KEY, not
// counted, not listed, and closed to writers.
inline constexpr std::string_view kNoticePrefix{"\0ddp/", 5};
inline constexpr std::string_view kDeathNotice{"\0ddp/1/death", 12};

[[nodiscard]] inline bool is_notice(std::string_view key) {
  return key.substr(0, kNoticePrefix.size()) == kNoticePrefix;
}

// A change of a watched key, for the sessions that watch it. A request is refused where there is no
// room for its news, but they aren't charged: whoever takes them sends them before the next one.
struct StoreNews {
  std::string bytes;
  std::vector<StoreSessionId> to;
};

// Belongs to the caller, who clears it; the store only appends.
struct StoreOutput {
  std::string reply;                  // to the session that asked
  std::vector<StoreSessionId> woken;  // others whose WAIT or BARRIER is over: one byte 0 each
  std::vector<StoreNews> news;
};

enum class SessionFate : std::uint8_t {
  keep,
  close,  // the protocol's only error: close the connection, after what `reply` already holds
};

// Passive. Nothing happens here unless a session asks or leaves; waiting costs nothing.
class KeyValueStore {
 public:
  explicit KeyValueStore(const StoreLimits& limits) : limits_(limits), budget_(limits.total) {}
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  struct Asker {
    StoreSessionId session;
    StoreDialect dialect = StoreDialect::c;
  };
  // Requests of one session must come in their order. A request is carried out whole or not at all.
  [[nodiscard]] SessionFate handle(Asker asker, const StoreRequest& request, StoreOutput& out);

  // The session has gone: drops what it waits for and watches. Its keys stay. If it was woken for a
  // value in a queue and has not fetched it, the next in line is woken.
  void forget(StoreSessionId session, StoreOutput& out);

  // `key` begins with kNoticePrefix.
  void set_notice(std::string_view key, std::string_view value, StoreOutput& out);

  // What sessions hold in buffers counts towards the limit of the whole, too. False: no room, and
  // nothing is charged.
  [[nodiscard]] bool charge(std::size_t bytes);
  void release(std::size_t bytes) { budget_.release(bytes); }

  [[nodiscard]] std::size_t number_of_keys() const { return listed_.size(); }
  [[nodiscard]] std::size_t bytes() const { return budget_.used(); }  // as the limit counts them

  // What a key costs beside its bytes and its value's: the entry, its places in the map (while that
  // grows, too) and in the list, and what the allocator adds.
  static constexpr std::size_t kEntryCost = 256;

 private:
  struct Entry {
    std::string key;
    std::string value;
    std::size_t place = 0;  // in listed_
  };
  // By the entry's own key. Never iterated.
  using Entries = boost::unordered_flat_map<std::string_view, std::unique_ptr<Entry>, StringHash>;

  SessionFate answer(StoreDialect dialect, const StoreRequest& request, StoreOutput& out);
  SessionFate set(std::string_view key, std::string_view value, StoreOutput& out);
  SessionFate append(const StoreRequest& request, StoreOutput& out);
  SessionFate compare_set(const StoreRequest& request, StoreOutput& out);
  SessionFate get(StoreDialect dialect, std::string_view key, StoreOutput& out) const;
  SessionFate multi_get(StoreDialect dialect, const StringList& keys, StoreOutput& out) const;
  SessionFate multi_set(const StoreRequest& request, StoreOutput& out);
  SessionFate add(const StoreRequest& request, StoreOutput& out);
  SessionFate delete_key(std::string_view key, StoreOutput& out);
  SessionFate list_keys(StoreOutput& out) const;
  SessionFate wait(const StringList& names, StoreOutput& out);
  SessionFate barrier(const StoreRequest& request, StoreOutput& out);
  SessionFate watch(std::string_view key, StoreOutput& out);
  SessionFate push(const StoreRequest& request, StoreOutput& out);
  SessionFate pop(std::string_view name, StoreOutput& out);

  [[nodiscard]] Entry* find(std::string_view key) const;        // null: there is no such key
  [[nodiscard]] bool all_exist(const StringList& names) const;  // as keys or as queues
  [[nodiscard]] bool exists(std::string_view name) const;
  // What a string has room for without memory of its own, and the least that it has with it.
  static std::size_t room_in_place() { return std::string{}.capacity(); }
  static std::size_t at_least_on_heap(std::size_t size) {
    return std::max(size, 2 * room_in_place());
  }
  // What a value costs, which may have room for more bytes than it has.
  static std::size_t cost(const std::string& value);
  // What a value of that size will cost there.
  static std::size_t cost_of_put(const Entry* at, std::size_t size);
  // The number kept there and `difference` more; nothing: there is other text.
  static std::optional<std::int64_t> sum_at(const Entry* at, std::int64_t difference);
  // For a value that costs so much at `key`, for the news of that, and for `beside` bytes more. A
  // key is looked up once a request: `at` is its entry, or null.
  [[nodiscard]] bool has_room(const Entry* at, std::string_view key, std::size_t value_cost,
                              std::size_t beside = 0) const;
  // How long the news is that a value takes another's place.
  [[nodiscard]] std::size_t size_of_news(std::string_view key, std::size_t before,
                                         std::size_t after) const;
  void put(Entry* at, std::string_view key, std::string_view value, StoreOutput& out);
  void value_changed(std::string_view key, std::string_view value, StoreOutput& out);
  void tell_watchers(KeyEvent event, std::string_view key, std::string_view before,
                     std::string_view after, StoreOutput& out) const;
  void wake_one(std::string_view queue, StoreOutput& out);
  void wake(std::span<const StoreSessionId> sessions, StoreOutput& out) const;

  StoreLimits limits_;
  StoreBudget budget_;
  Entries entries_;
  std::vector<Entry*> listed_;  // all but the notices
  StoreQueues queues_{budget_};
  StoreWaits waits_{budget_};
  StoreWatches watches_{budget_};
  StoreSessionId asker_;  // of the request being handled
};

}  // namespace ddp::rendezvous
