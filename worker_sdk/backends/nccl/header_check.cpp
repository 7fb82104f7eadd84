// Compiled only where the real headers are: our own declarations must agree with them.
#include <cuda.h>
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "worker_sdk/backends/nccl/cuda_api.h"
#include "worker_sdk/backends/nccl/nccl_api.h"

namespace {

namespace cuda = ddp::cuda_api;
namespace nccl = ddp::nccl_api;

// Passed alike in a call: an enum as an int, a pointer as a pointer, a struct of the same size.
template <class A, class B>
constexpr bool same_shape() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else {
    return sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
           std::is_class_v<A> == std::is_class_v<B>;
  }
}

template <class A, class B>
struct SameCall : std::false_type {};
template <class A, class B, class... As, class... Bs>
struct SameCall<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(As) == sizeof...(Bs)) {
      return same_shape<A, B>() && (same_shape<As, Bs>() && ...);
    } else {
      return false;
    }
  }();
};

#define DDP_SAME(space, name) \
  static_assert(SameCall<decltype(space::Api::name), decltype(&::name)>::value, #name)

DDP_SAME(cuda, cuInit);
DDP_SAME(cuda, cuDriverGetVersion);
DDP_SAME(cuda, cuDeviceGetCount);
DDP_SAME(cuda, cuDeviceGet);
DDP_SAME(cuda, cuDevicePrimaryCtxRetain);
DDP_SAME(cuda, cuDevicePrimaryCtxRelease_v2);
DDP_SAME(cuda, cuCtxPushCurrent_v2);
DDP_SAME(cuda, cuCtxPopCurrent_v2);
DDP_SAME(cuda, cuStreamCreate);
DDP_SAME(cuda, cuStreamDestroy_v2);
DDP_SAME(cuda, cuStreamQuery);
DDP_SAME(cuda, cuMemAlloc_v2);
DDP_SAME(cuda, cuMemFree_v2);
DDP_SAME(cuda, cuPointerGetAttribute);
DDP_SAME(cuda, cuGetErrorString);
static_assert(cuda::kSuccess == CUDA_SUCCESS);
static_assert(cuda::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(cuda::kStreamDefault == CU_STREAM_DEFAULT);
static_assert(cuda::kAttributeMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(cuda::kAttributeDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(cuda::kMemoryTypeDevice == CU_MEMORYTYPE_DEVICE);
static_assert(cuda::kMemoryTypeUnified == CU_MEMORYTYPE_UNIFIED);

DDP_SAME(nccl, ncclGetVersion);
DDP_SAME(nccl, ncclGetUniqueId);
DDP_SAME(nccl, ncclCommInitRankConfig);
DDP_SAME(nccl, ncclCommFinalize);
DDP_SAME(nccl, ncclCommDestroy);
DDP_SAME(nccl, ncclCommAbort);
DDP_SAME(nccl, ncclCommGetAsyncError);
DDP_SAME(nccl, ncclGetErrorString);
DDP_SAME(nccl, ncclGetLastError);
DDP_SAME(nccl, ncclAllReduce);
DDP_SAME(nccl, ncclBroadcast);
DDP_SAME(nccl, ncclRedOpCreatePreMulSum);
DDP_SAME(nccl, ncclRedOpDestroy);
static_assert(nccl::kSuccess == ncclSuccess && nccl::kUnhandledCudaError == ncclUnhandledCudaError);
static_assert(nccl::kSystemError == ncclSystemError && nccl::kInternalError == ncclInternalError);
static_assert(nccl::kInvalidArgument == ncclInvalidArgument);
static_assert(nccl::kInvalidUsage == ncclInvalidUsage && nccl::kRemoteError == ncclRemoteError);
static_assert(nccl::kInProgress == ncclInProgress);
static_assert(nccl::kInt8 == ncclInt8 && nccl::kUint8 == ncclUint8);
static_assert(nccl::kInt32 == ncclInt32 && nccl::kUint32 == ncclUint32);
static_assert(nccl::kInt64 == ncclInt64 && nccl::kUint64 == ncclUint64);
static_assert(nccl::kFloat16 == ncclFloat16 && nccl::kFloat32 == ncclFloat32);
static_assert(nccl::kFloat64 == ncclFloat64 && nccl::kBfloat16 == ncclBfloat16);
static_assert(nccl::kSum == ncclSum && nccl::kProd == ncclProd && nccl::kMax == ncclMax);
static_assert(nccl::kMin == ncclMin && nccl::kAvg == ncclAvg);
static_assert(nccl::kScalarHostImmediate == ncclScalarHostImmediate);
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId));

static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(nccl::Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(nccl::Config, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(nccl::Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(nccl::Config, split_share) == offsetof(ncclConfig_t, splitShare));
constexpr ncclConfig_t kInitial = NCCL_CONFIG_INITIALIZER;
static_assert(nccl::Config{}.magic == kInitial.magic);
static_assert(nccl::Config{}.split_share == kInitial.splitShare);

}  // namespace
