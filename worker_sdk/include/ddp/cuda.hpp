// Asks whether this process could use a GPU, without touching one.
#pragma once

#include <string>

#include <ddp/export.hpp>

namespace ddp {
inline namespace v1 {
namespace cuda {

// None of these initialises CUDA or makes a context, so they may be called before fork(), and they
// cost no GPU memory. Thread-safe. CUDA_VISIBLE_DEVICES is read at each call, as the driver would.

// True if a driver is installed and at least one GPU is visible.
[[nodiscard]] DDP_API bool is_available();

// How many GPUs are visible; 0 without a driver.
[[nodiscard]] DDP_API int device_count();

// Why is_available() is false, one clause for a message; empty if it is true.
[[nodiscard]] DDP_API std::string unavailable_reason();

}  // namespace cuda
}  // namespace v1
}  // namespace ddp
