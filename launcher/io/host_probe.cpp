#include "launcher/io/host_probe.h"

#include <dlfcn.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <string_view>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {
namespace {

constexpr int kMaxCpus = 8192;

// Empty if the driver's library isn't here or doesn't work.
std::optional<std::int32_t> gpus_by_nvml() {
  const std::unique_ptr<void, int (*)(void*)> library(
      ::dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL),
      [](void* handle) { return handle != nullptr ? ::dlclose(handle) : 0; });
  if (!library) return std::nullopt;
  const auto initialise = reinterpret_cast<int (*)()>(::dlsym(library.get(), "nvmlInit_v2"));
  const auto count =
      reinterpret_cast<int (*)(unsigned*)>(::dlsym(library.get(), "nvmlDeviceGetCount_v2"));
  const auto shut_down = reinterpret_cast<int (*)()>(::dlsym(library.get(), "nvmlShutdown"));
  if (initialise == nullptr || count == nullptr || shut_down == nullptr) return std::nullopt;
  if (initialise() != 0) return std::nullopt;
  unsigned devices = 0;
  const bool counted = count(&devices) == 0;
  shut_down();
  if (!counted) return std::nullopt;
  return static_cast<std::int32_t>(devices);
}

std::int32_t gpus_by_driver_folder() {
  std::error_code error;
  std::int32_t devices = 0;
  std::filesystem::directory_iterator entry("/proc/driver/nvidia/gpus", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    ++devices;
  }
  return devices;
}

bool names_a_gpu(std::string_view entry, std::int32_t present) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  std::int32_t index = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  return error == std::errc() && end == entry.data() + entry.size() && index >= 0 &&
         index < present;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

}  // namespace

std::int32_t allowed_cpus() {
  // The kernel refuses a set that is smaller than its own.
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(kMaxCpus), [](cpu_set_t* owned) { CPU_FREE(owned); });
  const std::size_t size = CPU_ALLOC_SIZE(kMaxCpus);
  if (::sched_getaffinity(0, size, set.get()) != 0) {
    return static_cast<std::int32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  }
  return std::max(1, CPU_COUNT_S(size, set.get()));
}

std::int32_t count_visible(const std::string& variable, std::int32_t present) {
  std::int32_t visible = 0;
  std::string_view rest = variable;
  for (;;) {
    const std::size_t comma = rest.find(',');
    if (!names_a_gpu(trim(rest.substr(0, comma)), present)) break;
    ++visible;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return present == 0 ? 0 : visible;
}

std::int32_t visible_gpus(const Environment& environment) {
  const auto by_nvml = gpus_by_nvml();
  const std::int32_t present = by_nvml ? *by_nvml : gpus_by_driver_folder();
  const auto variable = environment.find("CUDA_VISIBLE_DEVICES");
  return variable == environment.end() ? present : count_visible(variable->second, present);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::optional<std::string> missing_kernel_support() {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const bool can_close_range = ::syscall(SYS_close_range, ~0U, ~0U, 0) == 0;
  if (pidfd.valid() && can_close_range) return std::nullopt;
  utsname system{};
  ::uname(&system);
  return std::string("Linux 5.9 or later is needed (pidfd_open, close_range); this is ") +
         system.release + ", or a container's seccomp profile forbids them";
}

bool can_read_proc() {
  return ::access("/proc/self/stat", R_OK) == 0;
}

}  // namespace ddp::launcher
