// What this host is and has: CPUs that we may use, GPUs, its name, a kernel that is new enough.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/core/launch_config.h"

namespace ddp::launcher {

// By affinity, as `nproc` says it.
[[nodiscard]] std::int32_t allowed_cpus();

// NVIDIA GPUs that a worker with this environment (CUDA_VISIBLE_DEVICES) would see. No GPU context
// is made.
[[nodiscard]] std::int32_t visible_gpus(const Environment& environment);

// How many of `present` GPUs a value of CUDA_VISIBLE_DEVICES leaves: CUDA stops at the first entry
// that it doesn't know.
[[nodiscard]] std::int32_t count_visible(const std::string& variable, std::int32_t present);

[[nodiscard]] std::string host_name();

// One sentence on why we can't run here, if we can't.
[[nodiscard]] std::optional<std::string> missing_kernel_support();

[[nodiscard]] bool can_read_proc();

}  // namespace ddp::launcher
