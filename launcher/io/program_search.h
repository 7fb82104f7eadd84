// Finds the file of a program by name as execvp does, before anything is started.
#pragma once

#include <string>
#include <vector>

#include "launcher/core/launch_config.h"

namespace ddp::launcher {

// The files to try, in order; empty if there is none. A name with a slash is itself the only
// candidate. PATH is the worker's own.
[[nodiscard]] std::vector<std::string> find_program(const std::string& name,
                                                    const Environment& environment);

// One sentence for people on why a program could not be started, and what exit code says it.
struct SpawnRefusal {
  int exit_code;  // 126 or 127
  std::string reason;
};
[[nodiscard]] SpawnRefusal explain_exec_error(const std::string& name,
                                              const std::vector<std::string>& candidates,
                                              int error);

}  // namespace ddp::launcher
