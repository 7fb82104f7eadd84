// Where the nodes of a job meet, from options as text: backend, endpoint, ports, name of the job.
#pragma once

#include <string>

#include "launcher/core/given_options.h"
#include "launcher/core/launch_config.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {

// Needs `config.nodes`. `random_run_id` is used where the user gave none.
[[nodiscard]] rendezvous::Result<void> set_rendezvous(const GivenOptions& given,
                                                      const std::string& random_run_id,
                                                      LaunchConfig& config);

}  // namespace ddp::launcher
