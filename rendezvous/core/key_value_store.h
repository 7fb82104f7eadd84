// The worker store as a machine: a session's request goes in; its reply, and who is woken, come
// out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::rendezvous {

using StoreSessionId = Strong<struct StoreSessionTag, std::uint64_t>;

// Keys of the agent's notices begin so. Found by GET, WAIT, CHECK and MULTI_GET, not counted, and
// closed to writers.
inline constexpr std::string_view kNoticePrefix{"\0ddp/", 5};
inline constexpr std::string_view kDeathNotice{"\0ddp/1/death", 12};

// Belongs to the caller, who clears it; the store only appends.
struct StoreOutput {
  std::string reply;                  // to the session that asked
  std::vector<StoreSessionId> woken;  // other sessions whose WAIT is over: each is sent one byte 0
};

enum class SessionFate : std::uint8_t {
  keep,
  close,  // the protocol's only error: close the connection, after what `reply` already holds
};

// Passive. Nothing happens here unless a session asks or leaves; waiting costs nothing.
class KeyValueStore {
 public:
  explicit KeyValueStore(const StoreLimits& limits) : limits_(limits) {}
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  struct Asker {
    StoreSessionId session;
    StoreDialect dialect = StoreDialect::c;
  };
  // Requests of one session must come in their order. A request is carried out whole or not at all.
  [[nodiscard]] SessionFate handle(Asker asker, const StoreRequest& request, StoreOutput& out);

  // The session has gone: drops what it waits for. Its keys stay.
  void forget(StoreSessionId session);

  // `key` begins with kNoticePrefix.
  void set_notice(std::string_view key, std::string_view value, std::vector<StoreSessionId>& woken);

  // What sessions hold in buffers counts towards the limit of the whole, too. False: no room, and
  // nothing is charged.
  [[nodiscard]] bool charge(std::size_t bytes);
  void release(std::size_t bytes);

  [[nodiscard]] std::size_t number_of_keys() const { return keys_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  // as the limit counts them

  // What an entry costs beside its key and value, and a key that one session waits for.
  static constexpr std::size_t kEntryCost = 128;
  static constexpr std::size_t kWaitCost = 64;

 private:
  struct Waiter {
    StoreSessionId session;
    std::size_t registration;  // index into Wait::registrations
  };
  using Waiters = std::list<Waiter>;  // first come, first woken
  struct Slot {
    std::optional<std::string> value;  // absent: the key is only waited for
    Waiters waiters;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  // Never iterated. References to elements stay valid until they are erased.
  using Slots = std::unordered_map<std::string, Slot, Hash, std::equal_to<>>;
  using Entry = Slots::value_type;
  struct Registration {
    Entry* entry;
    Waiters::iterator place;
    bool met = false;
  };
  struct Wait {
    std::size_t missing = 0;
    std::vector<Registration> registrations;
  };

  SessionFate set(const StoreRequest& request, StoreOutput& out);
  SessionFate append(const StoreRequest& request, StoreOutput& out);
  SessionFate compare_set(const StoreRequest& request, StoreOutput& out);
  SessionFate get(StoreDialect dialect, const StoreRequest& request, StoreOutput& out) const;
  SessionFate multi_get(const StoreRequest& request, StoreOutput& out) const;
  SessionFate multi_set(const StoreRequest& request, StoreOutput& out);
  SessionFate add(const StoreRequest& request, StoreOutput& out);
  SessionFate delete_key(const StoreRequest& request, StoreOutput& out);
  SessionFate wait(const StoreRequest& request, StoreOutput& out);

  [[nodiscard]] const std::string* find(std::string_view key) const;
  [[nodiscard]] bool all_set(const StringList& keys) const;
  [[nodiscard]] bool has_room(std::string_view key, std::size_t value_size) const;
  Entry& entry_of(std::string_view key);
  void put(Entry& entry, std::string_view value, StoreOutput& out);
  void wake(Entry& entry, StoreOutput& out);
  void drop_if_unused(Entry& entry);

  StoreLimits limits_;
  Slots slots_;
  std::unordered_map<std::uint64_t, Wait> waits_;  // by session; never iterated
  StoreSessionId asker_;                           // of the request being handled
  std::size_t keys_ = 0;                           // that have a value, notices left out
  std::size_t bytes_ = 0;
};

}  // namespace ddp::rendezvous
