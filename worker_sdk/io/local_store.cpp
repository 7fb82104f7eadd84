#include "worker_sdk/io/local_store.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <ddp/error.hpp>

namespace ddp::sdk {

void LocalStore::set(std::string_view key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  values_.insert_or_assign(std::string(key), std::string(value));
  changed_.notify_all();
}

std::int64_t LocalStore::add(std::string_view key, std::int64_t delta) {
  const std::lock_guard lock(mutex_);
  std::string& value = values_[std::string(key)];
  std::int64_t number = 0;
  try {
    if (!value.empty()) number = std::stoll(value);
  } catch (const std::logic_error&) {
    throw Unavailable("the store's value of \"" + std::string(key) + "\" is no number");
  }
  number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) +
                                     static_cast<std::uint64_t>(delta));
  value = std::to_string(number);
  changed_.notify_all();
  return number;
}

Keys LocalStore::missing(const Keys& keys) const {
  Keys absent;
  for (const std::string& key : keys) {
    if (values_.find(key) == values_.end()) absent.push_back(key);
  }
  return absent;
}

void LocalStore::wait_locked(std::unique_lock<std::mutex>& lock, const Keys& keys,
                             Milliseconds timeout) {
  if (!changed_.wait_for(lock, bounded(timeout), [&] { return missing(keys).empty(); })) {
    throw Timeout("waited " + in_seconds(timeout) + " for the store's " + list_keys(missing(keys)) +
                  ", and no other process can set it: this one is alone");
  }
}

void LocalStore::wait(const Keys& keys, Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wait_locked(lock, keys, timeout);
}

std::vector<std::string> LocalStore::get_all(const Keys& keys, Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wait_locked(lock, keys, timeout);
  std::vector<std::string> values;
  for (const std::string& key : keys) values.push_back(values_.find(key)->second);
  return values;
}

std::string LocalStore::compare_set(std::string_view key, std::string_view expected,
                                    std::string_view desired) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (!expected.empty()) return std::string(expected);
    values_.emplace(key, desired);
    changed_.notify_all();
    return std::string(desired);
  }
  if (found->second == expected) found->second = desired;
  return found->second;
}

bool LocalStore::delete_key(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  values_.erase(found);
  return true;
}

std::int64_t LocalStore::num_keys() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(values_.size());
}

bool LocalStore::check(const Keys& keys) {
  const std::lock_guard lock(mutex_);
  return missing(keys).empty();
}

}  // namespace ddp::sdk
