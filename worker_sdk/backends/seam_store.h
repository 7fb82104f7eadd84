// The store that the SDK lends to a plug-in, as two functions that throw.
#pragma once

#include <string>
#include <vector>

#include "worker_sdk/backends/seam.h"

namespace ddp::backends {

inline ddp_error_v1 empty_error() {
  ddp_error_v1 error{};
  error.size = sizeof error;
  error.rank = -1;
  return error;
}

// Waits for the key and copies its value. Throws Failure with the store's status and message.
inline std::vector<char> store_get(const ddp_store_v1& store, const std::string& key,
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

inline void store_set(const ddp_store_v1& store, const std::string& key, const void* value,
                      size_t length) {
  ddp_error_v1 error = empty_error();
  const ddp_status status = store.set(store.self, key.c_str(), value, length, &error);
  if (status != DDP_OK) throw Failure(status, error.message, error.rank);
}

}  // namespace ddp::backends
