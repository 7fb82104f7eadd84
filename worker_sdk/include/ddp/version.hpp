// The version of the headers that a program was compiled with.
#pragma once

#include <ddp/export.hpp>

#define DDP_VERSION_MAJOR 0
#define DDP_VERSION_MINOR 1
#define DDP_VERSION_PATCH 0

namespace ddp {
inline namespace v1 {

// The version of the library that the program runs with, "0.1.0". Thread safe, never fails.
DDP_API const char* version() noexcept;

}  // namespace v1
}  // namespace ddp
