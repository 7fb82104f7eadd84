#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>

#include <ddp/cuda.hpp>

namespace {

void show_only(const char* devices) {
  setenv("CUDA_VISIBLE_DEVICES", devices, 1);
}

}  // namespace

TEST_CASE("cuda probe on stand-ins: counts what NVML shows, as CUDA_VISIBLE_DEVICES allows") {
  setenv("DDP_STANDIN_GPUS", "4", 1);
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(ddp::cuda::is_available());
  CHECK(ddp::cuda::device_count() == 4);
  CHECK(ddp::cuda::unavailable_reason().empty());
  show_only("2,3");
  CHECK(ddp::cuda::device_count() == 2);
  show_only("GPU-3000");
  CHECK(ddp::cuda::device_count() == 1);
  show_only("");
  CHECK_FALSE(ddp::cuda::is_available());
  CHECK(ddp::cuda::unavailable_reason().find("CUDA_VISIBLE_DEVICES") != std::string::npos);
  unsetenv("CUDA_VISIBLE_DEVICES");
  setenv("DDP_STANDIN_GPUS", "0", 1);
  CHECK(ddp::cuda::unavailable_reason() == "the NVIDIA driver shows no GPU");
}

TEST_CASE("cuda probe on stand-ins: an NVML that fails is no GPU where the kernel has no driver") {
  setenv("DDP_STANDIN_NVML_BROKEN", "1", 1);
  if (ddp::cuda::device_count() == 0) {
    CHECK(ddp::cuda::unavailable_reason().find("no NVIDIA driver") != std::string::npos);
  }
}
