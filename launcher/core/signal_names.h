// Signals by name, for messages.
#pragma once

#include <cstdint>
#include <string>

namespace ddp::launcher {

// "SIGSEGV"; "signal 42" where there is no name.
[[nodiscard]] std::string signal_name(std::int32_t signal);

}  // namespace ddp::launcher
