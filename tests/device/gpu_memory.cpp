#include "tests/device/gpu_memory.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace ddp::test {
namespace {

using namespace ddp::cuda_api;

template <class... Arguments>
void driver_call(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("no ") + name);
  const Result result = function(arguments...);
  if (result != kSuccess) {
    throw std::runtime_error(std::string(name) + " gave " + std::to_string(result));
  }
}

DevicePointer address(const void* memory) {
  return reinterpret_cast<DevicePointer>(memory);
}

}  // namespace

Gpu::Gpu(int ordinal) : ordinal_(ordinal) {
  Context context = nullptr;
  driver_call("cuInit", 0u);
  driver_call("cuDevicePrimaryCtxRetain", &context, ordinal);
  driver_call("cuCtxPushCurrent_v2", context);
}

Gpu::~Gpu() {
  Context context = nullptr;
  driver_call("cuCtxPopCurrent_v2", &context);
  driver_call("cuDevicePrimaryCtxRelease_v2", ordinal_);
}

void* Gpu::allocate(size_t bytes) const {
  DevicePointer pointer = 0;
  driver_call("cuMemAlloc_v2", &pointer, bytes);
  return reinterpret_cast<void*>(pointer);
}

void Gpu::release(void* memory) const {
  driver_call("cuMemFree_v2", address(memory));
}

void Gpu::upload(void* to, const void* from, size_t bytes) const {
  if (bytes > 0) driver_call("cuMemcpyHtoD_v2", address(to), from, bytes);
}

void Gpu::download(void* to, const void* from, size_t bytes) const {
  if (bytes > 0) driver_call("cuMemcpyDtoH_v2", to, address(from), bytes);
}

void* Gpu::make_stream() const {
  Stream stream = nullptr;
  driver_call("cuStreamCreate", &stream, kStreamDefault);
  return stream;
}

void Gpu::synchronize(void* stream) const {
  driver_call("cuStreamSynchronize", static_cast<Stream>(stream));
}

void Gpu::destroy_stream(void* stream) const {
  driver_call("cuStreamDestroy_v2", static_cast<Stream>(stream));
}

}  // namespace ddp::test
