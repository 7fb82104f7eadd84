// The part of NCCL's interface that the plug-in uses, declared by us so that no NCCL header is
// needed.
#pragma once

#include <climits>
#include <cstddef>

#include "worker_sdk/backends/nccl/cuda_api.h"

namespace ddp::nccl_api {

using Comm = struct OpaqueComm*;
using Result = int;    // ncclResult_t
using DataType = int;  // ncclDataType_t
using RedOp = int;     // ncclRedOp_t

// Later versions add results at the end and move ncclNumResults: what is not named here is an error
// like any other.
constexpr Result kSuccess = 0;
constexpr Result kUnhandledCudaError = 1;
constexpr Result kSystemError = 2;
constexpr Result kInternalError = 3;
constexpr Result kInvalidArgument = 4;
constexpr Result kInvalidUsage = 5;
constexpr Result kRemoteError = 6;
constexpr Result kInProgress = 7;
constexpr Result kTimeout = 8;  // Since 2.30.

constexpr DataType kInt8 = 0, kUint8 = 1, kInt32 = 2, kUint32 = 3, kInt64 = 4, kUint64 = 5;
constexpr DataType kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
constexpr RedOp kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4;
constexpr int kScalarHostImmediate = 1;

struct UniqueId {
  char internal[128];
};

// ncclConfig_t as of 2.18. NCCL reads as much as `size` says and takes its defaults for the rest.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 1;
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
  int later_member =
      INT_MIN;  // Where newer versions look for a member, "not set" instead of padding.
};

constexpr int kOldestVersion = 21800;

struct Api {
  Result (*ncclGetVersion)(int* version) = nullptr;
  Result (*ncclGetUniqueId)(UniqueId* id) = nullptr;
  Result (*ncclCommInitRankConfig)(Comm* comm, int ranks, UniqueId id, int rank,
                                   Config* config) = nullptr;
  Result (*ncclCommFinalize)(Comm comm) = nullptr;
  Result (*ncclCommDestroy)(Comm comm) = nullptr;
  Result (*ncclCommAbort)(Comm comm) = nullptr;
  Result (*ncclCommGetAsyncError)(Comm comm, Result* result) = nullptr;
  const char* (*ncclGetErrorString)(Result result) = nullptr;
  const char* (*ncclGetLastError)(Comm comm) = nullptr;
  Result (*ncclAllReduce)(const void* input, void* output, size_t count, DataType type, RedOp op,
                          Comm comm, cuda_api::Stream stream) = nullptr;
  Result (*ncclBroadcast)(const void* input, void* output, size_t count, DataType type, int root,
                          Comm comm, cuda_api::Stream stream) = nullptr;
  Result (*ncclRedOpCreatePreMulSum)(RedOp* op, void* scalar, DataType type, int residence,
                                     Comm comm) = nullptr;
  Result (*ncclRedOpDestroy)(RedOp op, Comm comm) = nullptr;
};

}  // namespace ddp::nccl_api
