#include <dirent.h>
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ddp/cuda.hpp>

#include "worker_sdk/core/visible_devices.h"

namespace ddp::sdk {
namespace {

// From NVML's C interface; nvmlReturn_t is an int, 0 is success.
using NvmlCall = int (*)();
using NvmlGetCount = int (*)(unsigned* count);
using NvmlGetDevice = int (*)(unsigned index, void** device);
using NvmlGetUuid = int (*)(void* device, char* uuid, unsigned length);

constexpr const char* kProcFolder = "/proc/driver/nvidia/gpus";

struct HostGpus {
  std::vector<std::string> uuids;
  std::string reason;  // why the list is empty
};

// Libraries of the driver stay open: they don't like to be unloaded.
void* nvml() {
  static void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

void* driver() {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

template <typename Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(::dlsym(nvml(), name));
}

// Nothing if NVML is not installed or does not work.
std::optional<std::vector<std::string>> ask_nvml() {
  if (nvml() == nullptr) return std::nullopt;
  const auto init = find<NvmlCall>("nvmlInit_v2");
  const auto shutdown = find<NvmlCall>("nvmlShutdown");
  const auto get_count = find<NvmlGetCount>("nvmlDeviceGetCount_v2");
  const auto get_device = find<NvmlGetDevice>("nvmlDeviceGetHandleByIndex_v2");
  const auto get_uuid = find<NvmlGetUuid>("nvmlDeviceGetUUID");
  if (!init || !shutdown || !get_count || !get_device || !get_uuid) return std::nullopt;
  if (init() != 0) return std::nullopt;
  std::vector<std::string> uuids;
  unsigned count = 0;
  const bool counted = get_count(&count) == 0;
  for (unsigned index = 0; counted && index < count; ++index) {
    void* device = nullptr;
    char uuid[96] = "";
    // A GPU that fell off the bus has no handle: CUDA does not offer it either.
    if (get_device(index, &device) != 0 || get_uuid(device, uuid, sizeof uuid) != 0) continue;
    uuids.emplace_back(uuid);
  }
  shutdown();
  if (!counted) return std::nullopt;
  return uuids;
}

std::string uuid_in(const std::string& information_file) {
  std::ifstream file(information_file);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("GPU UUID", 0) != 0) continue;
    const std::size_t at = line.find("GPU-");
    if (at != std::string::npos) return line.substr(at);
  }
  return {};
}

HostGpus ask_proc() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(kProcFolder), ::closedir);
  if (!folder)
    return {{},
            "there is no NVIDIA driver (no libnvidia-ml.so.1 that works, no " +
                std::string(kProcFolder) + ")"};
  HostGpus result;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    result.uuids.push_back(
        uuid_in(std::string(kProcFolder) + "/" + entry->d_name + "/information"));
  }
  return result;
}

VisibleDevices probe() {
  HostGpus host;
  if (auto uuids = ask_nvml()) {
    host.uuids = std::move(*uuids);
  } else {
    host = ask_proc();
    if (!host.reason.empty()) return {0, host.reason};
  }
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  VisibleDevices visible = count_visible_devices(
      variable == nullptr ? std::nullopt : std::optional<std::string_view>(variable), host.uuids);
  if (visible.count > 0 && driver() == nullptr) {
    return {0,
            "this host has a GPU, but its driver library libcuda.so.1 cannot be opened (in a "
            "container: start it with the GPU's compute capability)"};
  }
  return visible;
}

}  // namespace
}  // namespace ddp::sdk

namespace ddp {
inline namespace v1 {
namespace cuda {

bool is_available() {
  return device_count() > 0;
}

int device_count() {
  return sdk::probe().count;
}

std::string unavailable_reason() {
  return sdk::probe().reason;
}

}  // namespace cuda
}  // namespace v1
}  // namespace ddp
