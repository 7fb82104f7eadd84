// Durations and amounts of memory for people: as exact as one wants to know.
#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/core/time.h"

namespace ddp::launcher {

// "0.24 s", "12 s", "3 min 20 s", "2 h 5 min"
[[nodiscard]] std::string duration_text(rendezvous::Duration duration);

// "812 KiB", "96 MiB", "2.1 GiB"
[[nodiscard]] std::string memory_text(std::int64_t bytes);

}  // namespace ddp::launcher
