// One failure as one clause for people: who, where, and how it ended.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

// "rank 1 (local rank 1, pid 4243) on host a was killed by SIGSEGV (core dumped)"; no full stop.
[[nodiscard]] std::string describe_failure(const rendezvous::Failure& failure);

// What a worker or another host says must not move the cursor of whoever reads it, nor ring a bell,
// nor turn the direction of writing: such characters, and bytes that are no UTF-8, become '?'.
[[nodiscard]] std::string printable(std::string_view line);

}  // namespace ddp::launcher
