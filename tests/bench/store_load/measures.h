// The three things that are measured of a store server. Each prints one line of JSON.
#pragma once

#include <string>

#include "tests/bench/store_load/sockets.h"

namespace ddp::bench {

// Each client has one request under way, for that long. `operation` is set, get or add.
void measure_requests(const Target& target, const std::string& operation, int clients,
                      double seconds);

// `waiters` wait for a key, and another client sets it: until the last of them has been told.
void measure_notify(const Target& target, int waiters, int rounds);

// `ranks` connections join at once, as PyTorch's clients do, and then meet at a barrier. A
// connection that the server resets is counted and begun anew.
void measure_join(const Target& target, int ranks);

}  // namespace ddp::bench
