// Signals by name, for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ddp::launcher {

// 15 for "SIGTERM" or "TERM", in any case.
[[nodiscard]] std::optional<std::int32_t> signal_number(std::string name);

// "SIGSEGV"; "signal 42" where there is no name.
[[nodiscard]] std::string signal_name(std::int32_t signal);

}  // namespace ddp::launcher
