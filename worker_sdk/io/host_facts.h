// What this process can find out about the machine it runs on.
#pragma once

#include <string>

#include "worker_sdk/core/environment.h"

namespace ddp::sdk {

[[nodiscard]] Environment copy_environment();

// As people call it.
[[nodiscard]] std::string host_name();

// Boot id and network namespace: equal on two processes of one host, where no agent says so.
[[nodiscard]] std::string system_identity();

// How many CPUs this process may use.
[[nodiscard]] int allowed_cpus();

}  // namespace ddp::sdk
