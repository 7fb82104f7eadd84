// The store of a process that is alone: the same semantics, in its own memory.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/io/key_value_client.h"

namespace ddp::sdk {

class LocalStore final : public KeyValueClient {
 public:
  explicit LocalStore(Milliseconds timeout) : timeout_(timeout) {}

  void set(std::string_view key, std::string_view value) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  void wait(const Keys& keys, Milliseconds timeout) override;
  std::vector<std::string> get_all(const Keys& keys, Milliseconds timeout) override;
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view desired) override;
  bool delete_key(std::string_view key) override;
  std::int64_t num_keys() override;
  bool check(const Keys& keys) override;
  [[nodiscard]] Milliseconds timeout() const override { return timeout_; }

 private:
  [[nodiscard]] Keys missing(const Keys& keys) const;
  void wait_locked(std::unique_lock<std::mutex>& lock, const Keys& keys, Milliseconds timeout);

  Milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace ddp::sdk
