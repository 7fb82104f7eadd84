#include "worker_sdk/backends/gloo/gloo_store.h"

namespace ddp::backends {
namespace {

constexpr const char* kPrefix = "gloo/";
constexpr const char* kHostPrefix = "rank_";

ddp_error_v1 empty_error() {
  ddp_error_v1 error{};
  error.size = sizeof error;
  error.rank = -1;
  return error;
}

// Gloo's keys are "rank_N" and "N".
int rank_of_key(const std::string& key) {
  const std::string digits =
      key.rfind(kHostPrefix, 0) == 0 ? key.substr(std::string(kHostPrefix).size()) : key;
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoi(digits);
}

}  // namespace

std::vector<char> store_get(const ddp_store_v1& store, const std::string& key,
                            Milliseconds timeout) {
  std::vector<char> value;
  ddp_error_v1 error = empty_error();
  const auto sink = [](void* context, const void* data, size_t length) {
    const char* bytes = static_cast<const char*>(data);
    static_cast<std::vector<char>*>(context)->assign(bytes, bytes + length);
  };
  const ddp_status status =
      store.get(store.self, key.c_str(), timeout.count(), sink, &value, &error);
  if (status != DDP_OK) throw Failure(status, error.message, error.rank);
  return value;
}

void store_set(const ddp_store_v1& store, const std::string& key, const void* value,
               size_t length) {
  ddp_error_v1 error = empty_error();
  const ddp_status status = store.set(store.self, key.c_str(), value, length, &error);
  if (status != DDP_OK) throw Failure(status, error.message, error.rank);
}

void GlooStore::set(const std::string& key, const std::vector<char>& data) {
  store_set(store_, kPrefix + key, data.data(), data.size());
  known_[key] = data;
}

std::vector<char> GlooStore::get(const std::string& key) {
  return fetch(key);
}

void GlooStore::wait(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) fetch(key);
}

void GlooStore::wait(const std::vector<std::string>& keys, const Milliseconds& /*timeout*/) {
  wait(keys);
}

std::vector<char> GlooStore::addresses_of(int rank) const {
  const auto found = known_.find(std::to_string(rank));
  return found == known_.end() ? std::vector<char>{} : found->second;
}

const std::vector<char>& GlooStore::fetch(const std::string& key) {
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  try {
    return known_[key] = store_get(store_, kPrefix + key, deadline_.remaining());
  } catch (const Failure& failure) {
    const int rank = rank_of_key(key);
    if (failure.status() != DDP_TIMEOUT || rank < 0) throw;
    throw Failure(DDP_TIMEOUT,
                  "rank " + std::to_string(rank) + " did not come within " +
                      in_seconds(deadline_.timeout()) + " (Gloo set-up)",
                  rank);
  }
}

}  // namespace ddp::backends
