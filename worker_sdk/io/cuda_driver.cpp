#include "worker_sdk/io/cuda_driver.h"

#include <dlfcn.h>

#include <cstdint>

namespace ddp::sdk {
namespace {

// From the driver's C interface; CUresult is an int.
using Init = int (*)(unsigned flags);
using DeviceGetCount = int (*)(int* count);
using PointerGetAttribute = int (*)(void* data, int attribute, std::uint64_t pointer);
constexpr int kMemoryTypeAttribute = 2;
constexpr unsigned kDeviceMemory = 2;
constexpr int kSuccess = 0;

// Stays open: drivers don't like to be unloaded.
void* open_driver() {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return driver;
}

template <typename Function>
Function find(const char* name) {
  void* driver = open_driver();
  return driver == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(driver, name));
}

}  // namespace

int gpu_count(std::string& why_none) {
  const auto init = find<Init>("cuInit");
  const auto get_count = find<DeviceGetCount>("cuDeviceGetCount");
  if (init == nullptr || get_count == nullptr) {
    why_none = "there is no NVIDIA driver (libcuda.so.1)";
    return 0;
  }
  int count = 0;
  const int result = init(0);
  if (result != kSuccess || get_count(&count) != kSuccess || count <= 0) {
    why_none = "the NVIDIA driver offers no GPU (cuInit gave " + std::to_string(result) + ")";
    return 0;
  }
  return count;
}

bool is_device_memory(const void* pointer) {
  static const auto get_attribute = find<PointerGetAttribute>("cuPointerGetAttribute");
  unsigned type = 0;
  return get_attribute != nullptr && pointer != nullptr &&
         get_attribute(&type, kMemoryTypeAttribute, reinterpret_cast<std::uintptr_t>(pointer)) ==
             kSuccess &&
         type == kDeviceMemory;
}

}  // namespace ddp::sdk
