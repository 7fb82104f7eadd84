// Tells GPU memory from host memory.
#pragma once

namespace ddp::sdk {

// Is it memory of a GPU (not pinned host memory)? False where there is no CUDA driver.
[[nodiscard]] bool is_device_memory(const void* pointer);

}  // namespace ddp::sdk
