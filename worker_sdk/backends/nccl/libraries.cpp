#include "worker_sdk/backends/nccl/libraries.h"

#include <dlfcn.h>

#include <stdexcept>

namespace ddp::backends {
namespace {

class Library {
 public:
  Library(const char* file, const char* advice) : file_(file) {
    handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      throw std::runtime_error(std::string(file) + " cannot be opened: " + advice + " (" +
                               dlerror() + ")");
    }
  }

  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (function == nullptr) {
      throw std::runtime_error(std::string(file_) + " has no function " + name +
                               ": it is too old or damaged");
    }
  }

 private:
  const char* file_;
  void* handle_;
};

#define DDP_FIND(api, name) library.find((api).name, #name)

void open_cuda(cuda_api::Api& api) {
  const Library library("libcuda.so.1", "there is no NVIDIA driver on this host");
  DDP_FIND(api, cuInit);
  DDP_FIND(api, cuDriverGetVersion);
  DDP_FIND(api, cuDeviceGetCount);
  DDP_FIND(api, cuDeviceGet);
  DDP_FIND(api, cuDevicePrimaryCtxRetain);
  DDP_FIND(api, cuDevicePrimaryCtxRelease_v2);
  DDP_FIND(api, cuCtxPushCurrent_v2);
  DDP_FIND(api, cuCtxPopCurrent_v2);
  DDP_FIND(api, cuStreamCreate);
  DDP_FIND(api, cuStreamDestroy_v2);
  DDP_FIND(api, cuStreamQuery);
  DDP_FIND(api, cuMemAlloc_v2);
  DDP_FIND(api, cuMemFree_v2);
  DDP_FIND(api, cuPointerGetAttribute);
  DDP_FIND(api, cuGetErrorString);
}

void open_nccl(nccl_api::Api& api) {
  const Library library("libnccl.so.2",
                        "install NCCL 2.18 or newer, or name its folder in LD_LIBRARY_PATH");
  DDP_FIND(api, ncclGetVersion);
  DDP_FIND(api, ncclGetUniqueId);
  DDP_FIND(api, ncclCommInitRankConfig);
  DDP_FIND(api, ncclCommFinalize);
  DDP_FIND(api, ncclCommDestroy);
  DDP_FIND(api, ncclCommAbort);
  DDP_FIND(api, ncclCommGetAsyncError);
  DDP_FIND(api, ncclGetErrorString);
  DDP_FIND(api, ncclGetLastError);
  DDP_FIND(api, ncclAllReduce);
  DDP_FIND(api, ncclBroadcast);
  DDP_FIND(api, ncclRedOpCreatePreMulSum);
  DDP_FIND(api, ncclRedOpDestroy);
}

#undef DDP_FIND

Libraries open_all() {
  Libraries result;
  try {
    open_cuda(result.cuda);
    open_nccl(result.nccl);
    result.nccl.ncclGetVersion(&result.nccl_version);
    if (result.nccl_version < nccl_api::kOldestVersion) {
      result.reason = "libnccl.so.2 is version " + std::to_string(result.nccl_version) +
                      "; NCCL 2.18 (21800) or newer is needed";
    }
  } catch (const std::runtime_error& error) {
    result.reason = error.what();
  }
  return result;
}

}  // namespace

const Libraries& libraries() {
  static const Libraries opened = open_all();
  return opened;
}

}  // namespace ddp::backends
