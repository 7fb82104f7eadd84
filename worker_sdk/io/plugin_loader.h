// Finds and opens back-end plug-ins (<ddp/backend.h>).
#pragma once

#include <string>
#include <vector>

#include <ddp/backend.h>

namespace ddp::sdk {

struct LoadedPlugin {
  const ddp_backend_v1* table = nullptr;  // null: there is none, see `reason`
  std::string reason;                     // why it cannot be used here, one clause
};

// Looks for libddp_<name>.so in the folders given, then in the folder "ddp" beside libddp.so, and
// asks it whether it can run here. A plug-in stays loaded until the process ends: it may have
// threads.
[[nodiscard]] LoadedPlugin load_plugin(const std::string& name,
                                       const std::vector<std::string>& folders);

}  // namespace ddp::sdk
