// A key-value store as the SDK uses it; keys are those on the wire.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/io/connection.h"
#include "worker_sdk/io/deadline.h"

namespace ddp::sdk {

using Keys = std::vector<std::string>;

// Thread safe: one call at a time. What each call means and throws: <ddp/store.hpp>.
class KeyValueClient {
 public:
  KeyValueClient() = default;
  KeyValueClient(const KeyValueClient&) = delete;
  KeyValueClient& operator=(const KeyValueClient&) = delete;
  virtual ~KeyValueClient() = default;

  virtual void set(std::string_view key, std::string_view value) = 0;
  virtual std::int64_t add(std::string_view key, std::int64_t delta) = 0;
  virtual void wait(const Keys& keys, Milliseconds timeout) = 0;
  // The values, in the order of the keys. Waits for all of them.
  virtual std::vector<std::string> get_all(const Keys& keys, Milliseconds timeout) = 0;
  virtual std::string compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired) = 0;
  virtual bool delete_key(std::string_view key) = 0;
  virtual std::int64_t num_keys() = 0;
  virtual bool check(const Keys& keys) = 0;

  // Where no timeout is given.
  [[nodiscard]] virtual Milliseconds timeout() const = 0;

  std::string get(const std::string& key, Milliseconds timeout) {
    return std::move(get_all({key}, timeout).front());
  }
};

// "a, b, c and 7 more"
[[nodiscard]] std::string list_keys(const Keys& keys);

}  // namespace ddp::sdk
