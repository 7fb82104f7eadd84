// What the NCCL plug-in must do with any number of ranks: run on stand-ins with several, on a GPU
// with one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/device/gpu_memory.h"
#include "tests/integration/plugins/plugin.h"
#include "tests/integration/plugins/rank_processes.h"

namespace ddp::test {

// The plug-in under test: DDP_NCCL_PLUGIN of the environment, for a tree that was moved, else the
// one just built.
[[nodiscard]] std::string nccl_plugin_file();

using NcclBody = std::function<void(Group& group, const Gpu& gpu, int rank, RankReport& report)>;

// Runs `body` in an NCCL group of `ranks` processes, all on GPU 0.
[[nodiscard]] std::vector<RankOutcome> run_nccl_ranks(int ranks, int64_t timeout_ms,
                                                      const NcclBody& body);

// The same, and requires that all of it went well.
void in_nccl_group(int ranks, const NcclBody& body);

void check_all_reduce(int ranks);
void check_in_stream(int ranks);
void check_broadcast(int ranks);
void check_refusals(int ranks);

}  // namespace ddp::test
