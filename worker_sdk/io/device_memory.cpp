#include "worker_sdk/io/device_memory.h"

#include <dlfcn.h>

#include <cstdint>

namespace ddp::sdk {
namespace {

// From the driver's C interface; CUresult is an int, 0 is success.
using PointerGetAttribute = int (*)(void* data, int attribute, std::uint64_t pointer);
constexpr int kMemoryTypeAttribute = 2;
constexpr unsigned kDeviceMemory = 2;

// The library stays open: drivers don't like to be unloaded.
PointerGetAttribute find_function() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return nullptr;
  return reinterpret_cast<PointerGetAttribute>(::dlsym(driver, "cuPointerGetAttribute"));
}

}  // namespace

bool is_device_memory(const void* pointer) {
  static const PointerGetAttribute get_attribute = find_function();
  unsigned type = 0;
  return get_attribute != nullptr && pointer != nullptr &&
         get_attribute(&type, kMemoryTypeAttribute, reinterpret_cast<std::uintptr_t>(pointer)) ==
             0 &&
         type == kDeviceMemory;
}

}  // namespace ddp::sdk
