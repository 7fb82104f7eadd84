// The job's key-value store as a program sees it: a client of PyTorch's TCPStore protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ddp/export.hpp>

namespace ddp {
namespace sdk {
class KeyValueClient;
}

inline namespace v1 {

// Shared by all ranks of a round; each round of a job begins with an empty one. Keys and values are
// any bytes (a key up to 8 KiB, a value up to 8 MiB). Keys are those of PyTorch's TCPStore: a
// Python rank that says store.set("a", …) and a C++ rank that says store().get("a") mean the same.
// Keys that begin with "ddp/" are the SDK's own.
//
// Got from ProcessGroup::store(); lives as long as that group.
//
// Thread safety: any thread may call; calls are carried out one after the other, so a call that
// waits holds up the others.
//
// Every function throws Timeout where it waits in vain, PeerLost if a rank dies while it waits,
// Unavailable if the store's host is lost, InvalidUse for a key or value over the limits and after
// fork.
class DDP_API Store {
 public:
  explicit Store(std::shared_ptr<sdk::KeyValueClient> client);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Writes the value; a rank that waits for the key wakes. Returns before the store has it, but
  // this client's own later calls see it.
  void set(std::string_view key, std::string_view value);

  // The value. Waits until the key exists, up to the group's timeout or `timeout`.
  std::string get(std::string_view key);
  std::string get(std::string_view key, std::chrono::milliseconds timeout);

  // Adds to a counter kept as decimal text and returns the new value; an absent one counts as 0.
  // A value that is no number makes the store close the connection: Unavailable.
  std::int64_t add(std::string_view key, std::int64_t delta);

  // Returns when all keys have been set, or throws Timeout naming those that are missing.
  void wait(const std::vector<std::string>& keys);
  void wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout);

  // Puts `desired` where the value equals `expected`, or where the key is absent and `expected` is
  // empty. Returns what is stored afterwards; for an absent key with a non-empty `expected` nothing
  // is stored and `expected` comes back (so it is in PyTorch).
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired);

  // True if the key existed.
  bool delete_key(std::string_view key);

  // How many keys there are, the SDK's own and those of PyTorch included.
  std::int64_t num_keys();

  // Do all of them exist? Never waits for a key.
  bool check(const std::vector<std::string>& keys);

 private:
  std::shared_ptr<sdk::KeyValueClient> client_;
};

}  // namespace v1
}  // namespace ddp
