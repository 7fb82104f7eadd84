// GPU memory and streams for tests, through whatever libcuda.so.1 the loader finds: the driver or
// the stand-in.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "worker_sdk/backends/nccl/cuda_api.h"

namespace ddp::test {

// Context of one GPU, made current in this thread for as long as the object lives.
class Gpu {
 public:
  explicit Gpu(int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] void* allocate(size_t bytes) const;
  void release(void* memory) const;
  void upload(void* to, const void* from, size_t bytes) const;
  void download(void* to, const void* from, size_t bytes) const;
  [[nodiscard]] void* make_stream() const;
  void synchronize(void* stream) const;
  void destroy_stream(void* stream) const;

 private:
  int ordinal_;
};

template <class T>
class GpuArray {
 public:
  GpuArray(const Gpu& gpu, const std::vector<T>& values) : gpu_(gpu), count_(values.size()) {
    memory_ = gpu_.allocate(count_ * sizeof(T) + 1);
    gpu_.upload(memory_, values.data(), count_ * sizeof(T));
  }
  ~GpuArray() { gpu_.release(memory_); }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  [[nodiscard]] void* get() const { return memory_; }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> result(count_);
    gpu_.download(result.data(), memory_, count_ * sizeof(T));
    return result;
  }

 private:
  const Gpu& gpu_;
  size_t count_;
  void* memory_ = nullptr;
};

}  // namespace ddp::test
