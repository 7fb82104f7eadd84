#include "worker_sdk/io/plugin_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <ddp/version.hpp>

namespace ddp::sdk {
namespace {

// A program may bring another Gloo or NCCL (PyTorch does): the plug-in must find its own first.
// Sanitizers refuse to work with that.
#if defined(DDP_SANITIZED) || !defined(RTLD_DEEPBIND)
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

std::string folder_of_this_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&ddp::version), &info) == 0) return {};
  const std::string path = info.dli_fname == nullptr ? "" : info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string last_loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown reason" : text;
}

LoadedPlugin open_plugin(const std::string& path) {
  LoadedPlugin plugin;
  void* library = ::dlopen(path.c_str(), kOpenFlags);
  if (library == nullptr) {
    plugin.reason = "cannot be loaded: " + last_loader_error();
    return plugin;
  }
  const auto entry =
      reinterpret_cast<ddp_backend_v1_entry_fn>(::dlsym(library, "ddp_backend_v1_entry"));
  const ddp_backend_v1* table = entry == nullptr ? nullptr : entry();
  if (table == nullptr) {
    plugin.reason = path + " is not a plug-in of ddplaunch";
    return plugin;
  }
  constexpr std::size_t kNeeded = offsetof(ddp_backend_v1, destroy) + sizeof(table->destroy);
  if (table->abi_version != DDP_BACKEND_ABI_VERSION || table->size < kNeeded) {
    plugin.reason = path + " was made for version " + std::to_string(table->abi_version) +
                    " of the seam, this library has version " +
                    std::to_string(DDP_BACKEND_ABI_VERSION);
    return plugin;
  }
  ddp_error_v1 error{};
  error.size = sizeof error;
  if (table->available(&error) != DDP_OK) {
    plugin.reason = error.message;
    return plugin;
  }
  plugin.table = table;
  return plugin;
}

}  // namespace

LoadedPlugin load_plugin(const std::string& name, const std::vector<std::string>& folders) {
  std::vector<std::string> all = folders;
  const std::string own = folder_of_this_library();
  if (!own.empty()) all.push_back(own + "/ddp");
  std::string looked_in;
  for (const std::string& folder : all) {
    const std::string path = folder + "/libddp_" + name + ".so";
    // The first that is there counts: a broken one must not be replaced by another in silence.
    if (::access(path.c_str(), F_OK) == 0) return open_plugin(path);
    looked_in += (looked_in.empty() ? "" : ", ") + folder;
  }
  LoadedPlugin plugin;
  plugin.reason = "libddp_" + name + ".so is not installed (looked in " + looked_in + ")";
  return plugin;
}

}  // namespace ddp::sdk
