// One failure as one clause for people: who, where, and how it ended.
#pragma once

#include <string>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

// "rank 1 (local rank 1, pid 4243) on host a was killed by SIGSEGV (core dumped)"; no full stop.
[[nodiscard]] std::string describe_failure(const rendezvous::Failure& failure);

// What a worker or another host says must not move the cursor of whoever reads it, nor ring a bell.
[[nodiscard]] std::string printable(std::string line);

}  // namespace ddp::launcher
