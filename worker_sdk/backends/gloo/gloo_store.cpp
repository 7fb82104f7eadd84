#include "worker_sdk/backends/gloo/gloo_store.h"

namespace ddp::backends {
namespace {

constexpr const char* kPrefix = "gloo/";
constexpr const char* kHostPrefix = "rank_";

// Gloo's keys are "rank_N" and "N".
int rank_of_key(const std::string& key) {
  const std::string digits =
      key.rfind(kHostPrefix, 0) == 0 ? key.substr(std::string(kHostPrefix).size()) : key;
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoi(digits);
}

}  // namespace

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
