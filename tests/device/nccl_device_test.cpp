#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

#include <ddp/cuda.hpp>

#include "tests/device/nccl_checks.h"

namespace {

using namespace ddp::test;

// One GPU carries one rank: NCCL refuses two. ctest counts a test that prints this line as skipped.
bool on_gpu() {
  std::string reason = ddp::cuda::unavailable_reason();
  if (reason.empty()) {
    const Plugin plugin(nccl_plugin_file());
    ddp_error_v1 error = empty_error();
    if (plugin.table().available(&error) != DDP_OK) reason = error.message;
  }
  if (!reason.empty()) std::printf("SKIPPED: %s\n", reason.c_str());
  return reason.empty();
}

}  // namespace

TEST_CASE("nccl on a GPU: all_reduce of one rank") {
  if (on_gpu()) check_all_reduce(1);
}

TEST_CASE("nccl on a GPU: calls on a stream keep their order") {
  if (on_gpu()) check_in_stream(1);
}

TEST_CASE("nccl on a GPU: broadcast of one rank") {
  if (on_gpu()) check_broadcast(1);
}

TEST_CASE("nccl on a GPU: what cannot work is refused in words") {
  if (on_gpu()) check_refusals(1);
}

TEST_CASE("nccl on a GPU: a rank that never comes ends the set-up in time") {
  if (!on_gpu()) return;
  const ScratchFolder folder;
  const auto outcomes = run_ranks(2, [&](int rank, RankReport& report) {
    if (rank == 1) return;
    const Plugin plugin(nccl_plugin_file());
    const FileStore store(folder.path());
    const Group group(plugin.table(), store, {rank, 2, 0, 3000});
    report.record(group.status(), group.error());
  });
  CAPTURE(outcomes[0].report.message);
  CHECK_FALSE(outcomes[0].hung);
  CHECK(outcomes[0].report.status == DDP_TIMEOUT);
}
