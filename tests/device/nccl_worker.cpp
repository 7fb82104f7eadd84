// A worker for tests: adds up GPU memory over all ranks through the SDK, and says which backend
// carried it.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include <ddp/ddp.hpp>

#include "tests/device/gpu_memory.h"

namespace {

using ddp::test::Gpu;
using ddp::test::GpuArray;

// What only a GPU can reduce; and a refusal, after which all goes on.
bool reduces_bfloat16(ddp::ProcessGroup& group, const Gpu& gpu) {
  constexpr std::uint16_t kOne = 0x3f80;
  constexpr std::uint16_t kTwo = 0x4000;
  const GpuArray<std::uint16_t> data(gpu, std::vector<std::uint16_t>(100, kOne));
  try {
    if (group.rank() == 0) {
      group.all_reduce_bytes(data.get(), 100, ddp::DataType::int16, ddp::ReduceOp::sum);
      return false;
    }
  } catch (const ddp::InvalidUse&) {
    // NCCL has no int16. The other ranks have not seen this call.
  }
  group.all_reduce_bytes(data.get(), 100, ddp::DataType::bfloat16, ddp::ReduceOp::sum);
  group.barrier();
  return group.world_size() != 2 || data.values() == std::vector<std::uint16_t>(100, kTwo);
}

int work() {
  ddp::ProcessGroup group = ddp::init_process_group();
  const Gpu gpu(group.local_rank());
  constexpr std::size_t kCount = 100'000;
  const GpuArray<float> data(gpu, std::vector<float>(kCount, static_cast<float>(group.rank() + 1)));
  float* memory = static_cast<float*>(data.get());
  group.all_reduce(memory, kCount, ddp::ReduceOp::sum);
  group.broadcast(memory, kCount, group.world_size() - 1);
  std::vector<double> on_host{1.0};
  group.all_reduce(on_host);
  group.barrier();
  const int world = group.world_size();
  const float wanted = static_cast<float>(world * (world + 1) / 2);
  for (const float value : data.values()) {
    if (value == wanted) continue;
    std::fprintf(stderr, "rank %d: %g, not %g\n", group.rank(), static_cast<double>(value),
                 static_cast<double>(wanted));
    return 1;
  }
  if (on_host[0] != world) return 1;
  if (!reduces_bfloat16(group, gpu)) return 1;
  std::printf("rank %d of %d: GPU memory by %s, host memory by %s: right\n", group.rank(), world,
              group.backend().c_str(), group.host_backend().c_str());
  return group.backend() == "nccl" ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nccl_worker: %s\n", error.what());
    return 1;
  }
}
