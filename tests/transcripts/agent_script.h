// Plays a written conversation to the agent machine and writes down what it asks for.
#pragma once

#include <string>

namespace ddp::testing {

// `script` holds comments (#), commands (>) and, below each, indented effects. Returns the script
// with the effects replaced by those that the machine really gave. Throws std::runtime_error on a
// command that it does not know.
[[nodiscard]] std::string play_agent_script(const std::string& script);

}  // namespace ddp::testing
