// A stand-in for libcuda.so.1, for tests only: "GPU memory" is host memory, a stream is a thread.
//
// It proves what our code asks of the driver: contexts made current and given back, work that is
// really asynchronous, memory told apart. It proves nothing about a GPU. DDP_STANDIN_GPUS sets how
// many it shows (2).
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "worker_sdk/backends/nccl/cuda_api.h"

// The opaque types of the seam, given a body here.
namespace ddp::cuda_api {

struct OpaqueContext {
  int device = 0;
};

struct OpaqueStream {
  OpaqueStream() : worker([this] { work(); }) {}
  ~OpaqueStream() {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    worker.join();
  }

  void push(std::function<void()> task) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      tasks.push_back(std::move(task));
      ++pending;
    }
    changed.notify_all();
  }

  bool idle() {
    const std::lock_guard<std::mutex> lock(mutex);
    return pending == 0;
  }

  void await_idle() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return pending == 0; });
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stopping || !tasks.empty(); });
      if (tasks.empty()) return;
      const std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      lock.lock();
      --pending;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  size_t pending = 0;
  bool stopping = false;
  std::thread worker;
};

}  // namespace ddp::cuda_api

namespace {

using namespace ddp::cuda_api;

constexpr Result kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101;
constexpr Result kInvalidContext = 201;
constexpr int kMostGpus = 16;

int gpus() {
  const char* text = std::getenv("DDP_STANDIN_GPUS");
  return text == nullptr ? 2 : std::atoi(text);
}

struct Allocation {
  size_t bytes;
  int device;
};

struct State {
  std::mutex mutex;
  std::map<DevicePointer, Allocation> memory;
  OpaqueContext contexts[kMostGpus];
};

State& state() {
  static State held;
  return held;
}

std::vector<Context>& current() {
  thread_local std::vector<Context> stack;
  return stack;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

Result cuInit(unsigned) {
  return gpus() > 0 ? kSuccess : kNoDevice;
}
Result cuDriverGetVersion(int* version) {
  *version = 12000;
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = gpus();
  return kSuccess;
}
Result cuDeviceGet(Device* device, int ordinal) {
  if (ordinal < 0 || ordinal >= gpus() || ordinal >= kMostGpus) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  state().contexts[device].device = device;
  *context = &state().contexts[device];
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease_v2(Device) {
  return kSuccess;
}
Result cuCtxPushCurrent_v2(Context context) {
  current().push_back(context);
  return kSuccess;
}
Result cuCtxPopCurrent_v2(Context* context) {
  if (current().empty()) return kInvalidContext;
  *context = current().back();
  current().pop_back();
  return kSuccess;
}
Result cuStreamCreate(Stream* stream, unsigned) {
  if (current().empty()) return kInvalidContext;
  *stream = std::make_unique<OpaqueStream>().release();
  return kSuccess;
}
Result cuStreamDestroy_v2(Stream stream) {
  std::unique_ptr<OpaqueStream>(stream).reset();
  return kSuccess;
}
Result cuStreamQuery(Stream stream) {
  return stream->idle() ? kSuccess : kNotReady;
}
Result cuStreamSynchronize(Stream stream) {
  stream->await_idle();
  return kSuccess;
}
Result cuLaunchHostFunc(Stream stream, void (*function)(void*), void* data) {
  stream->push([function, data] { function(data); });
  return kSuccess;
}
Result cuMemAlloc_v2(DevicePointer* pointer, size_t bytes) {
  if (current().empty()) return kInvalidContext;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) return kOutOfMemory;
  std::memset(memory, 0xCD, bytes);
  *pointer = reinterpret_cast<DevicePointer>(memory);
  const std::lock_guard<std::mutex> lock(state().mutex);
  state().memory[*pointer] = {bytes, current().back()->device};
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer pointer) {
  if (current().empty()) return kInvalidContext;
  const std::lock_guard<std::mutex> lock(state().mutex);
  if (state().memory.erase(pointer) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(pointer));
  return kSuccess;
}
Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kSuccess;
}
Result cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}
Result cuPointerGetAttribute(void* value, int attribute, DevicePointer pointer) {
  const std::lock_guard<std::mutex> lock(state().mutex);
  auto after = state().memory.upper_bound(pointer);
  if (after == state().memory.begin()) return kInvalidValue;
  const auto& [begin, allocation] = *--after;
  if (pointer >= begin + allocation.bytes) return kInvalidValue;
  if (attribute == kAttributeMemoryType) *static_cast<unsigned*>(value) = kMemoryTypeDevice;
  if (attribute == kAttributeDeviceOrdinal) *static_cast<int*>(value) = allocation.device;
  return kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == kSuccess ? "no error" : "stand-in error";
  return kSuccess;
}

#pragma GCC visibility pop
}
