// What each worker of this node is started with: its arguments and its environment. The only place
// that makes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/core/launch_config.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

// Added to a plan's environment by the shell, which makes the file and the descriptor.
inline constexpr const char* kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";
inline constexpr const char* kSharedMemoryVariable = "DDP_SHM_FD";

struct WorkerPlan {
  rendezvous::LocalRank local_rank;
  rendezvous::Rank rank;
  std::vector<std::string> arguments;  // [0] is the program, searched in PATH as execvp does
  Environment environment;             // its own variables, beside those that all share
};

// What all share is there once: with hundreds of workers the copies would be most of our memory.
struct RoundPlan {
  Environment environment;          // DDP_SHM_FD and TORCHELASTIC_ERROR_FILE are added by the shell
  std::vector<WorkerPlan> workers;  // one per local rank
};

// Needs `placement.master`. `${local_rank}` in arguments is replaced as torchrun does.
[[nodiscard]] RoundPlan plan_workers(const LaunchConfig& config, const rendezvous::NodeId& node,
                                     const rendezvous::Placement& placement,
                                     const Environment& base);

// The program that runs Python workers: PYTHON_EXEC, else python3.
[[nodiscard]] std::string python_of(const Environment& environment);

// `${local_rank}` and `$local_rank` become the number, `$$` becomes `$`, all else stays.
[[nodiscard]] std::string substitute_macros(std::string_view text,
                                            rendezvous::LocalRank local_rank);

// "attempt_<restarts>", with ".<m>" after the m-th round that no failure was charged for: no two
// rounds of a job share a folder.
[[nodiscard]] std::string attempt_folder(const rendezvous::Placement& placement);

// <run_folder>/<attempt>/<local rank>/error.json
[[nodiscard]] std::string error_file_path(const std::string& run_folder,
                                          const rendezvous::Placement& placement,
                                          rendezvous::LocalRank local_rank);

}  // namespace ddp::launcher
