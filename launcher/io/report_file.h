// The file that --report names: written whole or not at all, under its name only once it is
// complete.
#pragma once

#include <optional>
#include <string>

namespace ddp::launcher {

// Looks before anything runs whether it can be written later. One sentence if not.
[[nodiscard]] std::optional<std::string> objection_to_report(const std::string& path);

// Replaces what was there. One sentence if it could not.
[[nodiscard]] std::optional<std::string> write_report(const std::string& path,
                                                      const std::string& text);

}  // namespace ddp::launcher
