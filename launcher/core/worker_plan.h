// What each worker of this node is started with: its arguments and its environment. The only place
// that makes them.
#pragma once

#include <string>
#include <vector>

#include "launcher/core/launch_config.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

struct WorkerPlan {
  rendezvous::LocalRank local_rank;
  rendezvous::Rank rank;
  std::vector<std::string> arguments;  // [0] is the program, searched in PATH as execvp does
  Environment
      environment;  // complete; DDP_SHM_FD and TORCHELASTIC_ERROR_FILE are added by the shell
};

// One plan per local rank. Needs `placement.master`. `${local_rank}` in arguments is replaced as
// torchrun does.
[[nodiscard]] std::vector<WorkerPlan> plan_workers(const LaunchConfig& config,
                                                   const rendezvous::NodeId& node,
                                                   const rendezvous::Placement& placement,
                                                   const Environment& base);

}  // namespace ddp::launcher
