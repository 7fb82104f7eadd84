// Opens the CUDA driver and NCCL at run time, once per process, and says what is missing.
#pragma once

#include <string>

#include "worker_sdk/backends/nccl/cuda_api.h"
#include "worker_sdk/backends/nccl/nccl_api.h"

namespace ddp::backends {

struct Libraries {
  cuda_api::Api cuda;
  nccl_api::Api nccl;
  int nccl_version = 0;  // 22809 is 2.28.9
  std::string reason;    // Why they can't be used; empty if they can.
};

// Opening them makes no GPU context and does not call cuInit. Never closed.
[[nodiscard]] const Libraries& libraries();

}  // namespace ddp::backends
