// A stand-in for libnvidia-ml.so.1, for tests only: shows DDP_STANDIN_GPUS GPUs (2) with made-up
// UUIDs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" {
#pragma GCC visibility push(default)

int nvmlInit_v2() {
  return std::getenv("DDP_STANDIN_NVML_BROKEN") == nullptr ? 0 : 9;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  const char* text = std::getenv("DDP_STANDIN_GPUS");
  *count = text == nullptr ? 2 : static_cast<unsigned>(std::atoi(text));
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  std::snprintf(uuid, length, "GPU-%u000-stand-in",
                static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)));
  return 0;
}

#pragma GCC visibility pop
}
