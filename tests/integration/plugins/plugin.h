// A plug-in as the SDK sees it: opened by name, used through its table of functions.
#pragma once

#include <cstdint>
#include <string>

#include <ddp/backend.h>

#include "tests/integration/plugins/file_store.h"

namespace ddp::test {

class Plugin {
 public:
  explicit Plugin(const std::string& file);
  [[nodiscard]] const ddp_backend_v1& table() const { return *table_; }

 private:
  // Never closed: a plug-in's threads may outlive its groups by a moment.
  const ddp_backend_v1* table_ = nullptr;
};

ddp_error_v1 empty_error();

struct GroupSettings {
  int rank = 0;
  int world_size = 1;
  int device = -1;
  int64_t timeout_ms = 30'000;
};

// A group of a plug-in; each call keeps its status and its error.
class Group {
 public:
  Group(const ddp_backend_v1& table, const FileStore& store, const GroupSettings& settings);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] bool made() const { return group_ != nullptr; }
  [[nodiscard]] ddp_status status() const { return status_; }
  [[nodiscard]] const ddp_error_v1& error() const { return error_; }

  ddp_status all_reduce(ddp_dtype dtype, ddp_reduce_op op, const void* input, void* output,
                        size_t count, int64_t timeout_ms = -1);
  ddp_status broadcast(ddp_dtype dtype, int root, const void* input, void* output, size_t count);
  ddp_status barrier();
  ddp_status poll();
  void abort();
  // For the next calls: the factor of premul_sum, and the stream.
  void set_premul(double factor) { premul_ = factor; }
  void set_stream(void* stream) { stream_ = stream; }

 private:
  [[nodiscard]] ddp_call_v1 call() const;

  const ddp_backend_v1& table_;
  ddp_group* group_ = nullptr;
  ddp_error_v1 error_;
  ddp_status status_;
  double premul_ = 1;
  void* stream_ = nullptr;
};

}  // namespace ddp::test
