#include <ddp/store.hpp>

#include <utility>

#include "worker_sdk/io/key_value_client.h"

namespace ddp {
inline namespace v1 {
namespace {

// PyTorch's TCPStore puts a slash before every key; so both see the same ones.
std::string on_the_wire(std::string_view key) {
  return "/" + std::string(key);
}

std::vector<std::string> on_the_wire(const std::vector<std::string>& keys) {
  std::vector<std::string> prefixed;
  prefixed.reserve(keys.size());
  for (const std::string& key : keys) prefixed.push_back(on_the_wire(key));
  return prefixed;
}

}  // namespace

Store::Store(std::shared_ptr<sdk::KeyValueClient> client) : client_(std::move(client)) {}
Store::~Store() = default;

void Store::set(std::string_view key, std::string_view value) {
  client_->set(on_the_wire(key), value);
}

std::string Store::get(std::string_view key) {
  return get(key, client_->timeout());
}

std::string Store::get(std::string_view key, std::chrono::milliseconds timeout) {
  return client_->get(on_the_wire(key), timeout);
}

std::int64_t Store::add(std::string_view key, std::int64_t delta) {
  return client_->add(on_the_wire(key), delta);
}

void Store::wait(const std::vector<std::string>& keys) {
  wait(keys, client_->timeout());
}

void Store::wait(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
  client_->wait(on_the_wire(keys), timeout);
}

std::string Store::compare_set(std::string_view key, std::string_view expected,
                               std::string_view desired) {
  return client_->compare_set(on_the_wire(key), expected, desired);
}

bool Store::delete_key(std::string_view key) {
  return client_->delete_key(on_the_wire(key));
}

std::int64_t Store::num_keys() {
  return client_->num_keys();
}

bool Store::check(const std::vector<std::string>& keys) {
  return client_->check(on_the_wire(keys));
}

}  // namespace v1
}  // namespace ddp
