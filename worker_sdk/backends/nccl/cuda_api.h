// The few functions of the CUDA driver that the NCCL plug-in calls, declared by us so that no CUDA
// header is needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddp::cuda_api {

using Result = int;  // CUresult
using Device = int;
using Context = struct OpaqueContext*;
using Stream = struct OpaqueStream*;
using DevicePointer = std::uintptr_t;  // CUdeviceptr

constexpr Result kSuccess = 0;
constexpr Result kNotReady = 600;
constexpr unsigned kStreamDefault = 0;  // Ordered with the legacy default stream.
constexpr int kAttributeMemoryType = 2;
constexpr int kAttributeDeviceOrdinal = 9;
constexpr unsigned kMemoryTypeDevice = 2;
constexpr unsigned kMemoryTypeUnified = 4;

// Filled by name from libcuda.so.1; `_v2` where the driver's header maps the plain name to it.
struct Api {
  Result (*cuInit)(unsigned flags) = nullptr;
  Result (*cuDriverGetVersion)(int* version) = nullptr;
  Result (*cuDeviceGetCount)(int* count) = nullptr;
  Result (*cuDeviceGet)(Device* device, int ordinal) = nullptr;
  Result (*cuDevicePrimaryCtxRetain)(Context* context, Device device) = nullptr;
  Result (*cuDevicePrimaryCtxRelease_v2)(Device device) = nullptr;
  Result (*cuCtxPushCurrent_v2)(Context context) = nullptr;
  Result (*cuCtxPopCurrent_v2)(Context* context) = nullptr;
  Result (*cuStreamCreate)(Stream* stream, unsigned flags) = nullptr;
  Result (*cuStreamDestroy_v2)(Stream stream) = nullptr;
  Result (*cuStreamQuery)(Stream stream) = nullptr;
  Result (*cuMemAlloc_v2)(DevicePointer* pointer, size_t bytes) = nullptr;
  Result (*cuMemFree_v2)(DevicePointer pointer) = nullptr;
  Result (*cuPointerGetAttribute)(void* value, int attribute, DevicePointer pointer) = nullptr;
  Result (*cuGetErrorString)(Result result, const char** text) = nullptr;
};

}  // namespace ddp::cuda_api
