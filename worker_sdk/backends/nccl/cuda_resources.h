// What a group holds on its GPU, each released by its destructor: the primary context, a stream, a
// cell.
#pragma once

#include <string>

#include "worker_sdk/backends/nccl/cuda_api.h"
#include "worker_sdk/backends/seam.h"

namespace ddp::backends {

inline void check_cuda(const cuda_api::Api& cuda, cuda_api::Result result,
                       const std::string& what) {
  if (result == cuda_api::kSuccess) return;
  const char* text = nullptr;
  cuda.cuGetErrorString(result, &text);
  throw Failure(DDP_UNAVAILABLE, what + " failed: " + (text != nullptr ? text : "CUDA error") +
                                     " (" + std::to_string(result) + ")");
}

// The context that the program's own CUDA calls use too, kept alive.
class PrimaryContext {
 public:
  PrimaryContext(const cuda_api::Api& cuda, int ordinal) : cuda_(cuda) {
    check_cuda(cuda_, cuda_.cuInit(0), "starting CUDA");
    int count = 0;
    check_cuda(cuda_, cuda_.cuDeviceGetCount(&count), "counting GPUs");
    if (ordinal < 0 || ordinal >= count) {
      throw Failure(DDP_UNAVAILABLE, "there is no GPU " + std::to_string(ordinal) +
                                         ": this process sees " + std::to_string(count) +
                                         (count == 1 ? " GPU" : " GPUs"));
    }
    check_cuda(cuda_, cuda_.cuDeviceGet(&device_, ordinal), "opening the GPU");
    check_cuda(cuda_, cuda_.cuDevicePrimaryCtxRetain(&context_, device_),
               "making a context on GPU " + std::to_string(ordinal));
  }
  ~PrimaryContext() { cuda_.cuDevicePrimaryCtxRelease_v2(device_); }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  [[nodiscard]] const cuda_api::Api& cuda() const { return cuda_; }
  [[nodiscard]] cuda_api::Context get() const { return context_; }

 private:
  const cuda_api::Api& cuda_;
  cuda_api::Device device_ = 0;
  cuda_api::Context context_ = nullptr;
};

// Makes the context current in this thread, and leaves the caller's as it was.
class CurrentContext {
 public:
  explicit CurrentContext(const PrimaryContext& context) : cuda_(context.cuda()) {
    check_cuda(cuda_, cuda_.cuCtxPushCurrent_v2(context.get()), "switching to the GPU");
  }
  ~CurrentContext() {
    cuda_api::Context popped = nullptr;
    cuda_.cuCtxPopCurrent_v2(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const cuda_api::Api& cuda_;
};

// Made and destroyed with the context current.
class OwnStream {
 public:
  explicit OwnStream(const cuda_api::Api& cuda) : cuda_(cuda) {
    // Not a "non-blocking" one: what the caller did on the default stream must come first.
    check_cuda(cuda_, cuda_.cuStreamCreate(&stream_, cuda_api::kStreamDefault), "making a stream");
  }
  ~OwnStream() { cuda_.cuStreamDestroy_v2(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  [[nodiscard]] cuda_api::Stream get() const { return stream_; }

 private:
  const cuda_api::Api& cuda_;
  cuda_api::Stream stream_ = nullptr;
};

class DeviceCell {
 public:
  explicit DeviceCell(const cuda_api::Api& cuda) : cuda_(cuda) {
    check_cuda(cuda_, cuda_.cuMemAlloc_v2(&pointer_, 16), "taking GPU memory");
  }
  ~DeviceCell() { cuda_.cuMemFree_v2(pointer_); }
  DeviceCell(const DeviceCell&) = delete;
  DeviceCell& operator=(const DeviceCell&) = delete;
  [[nodiscard]] void* get() const { return reinterpret_cast<void*>(pointer_); }

 private:
  const cuda_api::Api& cuda_;
  cuda_api::DevicePointer pointer_ = 0;
};

}  // namespace ddp::backends
