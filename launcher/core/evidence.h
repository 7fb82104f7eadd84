// What a worker's last words tell of its death: did it die of itself, or because it lost a peer?
#pragma once

#include <cstdint>
#include <string_view>

namespace ddp::launcher {

// True only for what libraries say when the other end of their connection is gone: a death that is
// wrongly called a consequence holds up the stop. Texts of any bytes and length; only the end of a
// long one is looked at.
[[nodiscard]] bool tells_of_lost_peer(std::string_view error_message, std::string_view last_output);

// Signals that a program brings on itself: nobody sends them to make it stop.
[[nodiscard]] bool is_crash_signal(std::int32_t signal);

}  // namespace ddp::launcher
