// Explains why the kernel finds a worker's arguments and environment too long.
#pragma once

#include <string>
#include <vector>

#include "launcher/io/program_search.h"

namespace ddp::launcher {

// `environment` as "NAME=value". Names the one text that is too long for itself, else both sums.
[[nodiscard]] SpawnRefusal explain_too_long(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& environment);

}  // namespace ddp::launcher
