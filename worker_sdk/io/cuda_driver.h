// The two questions that the SDK's core asks of a CUDA driver, if there is one.
#pragma once

#include <string>

namespace ddp::sdk {

// How many GPUs this process may use (CUDA_VISIBLE_DEVICES counts); 0 with the reason. Makes no
// context.
[[nodiscard]] int gpu_count(std::string& why_none);

// Is it memory of a GPU (not pinned host memory)? False where there is no driver.
[[nodiscard]] bool is_device_memory(const void* pointer);

}  // namespace ddp::sdk
