#include <catch2/catch.hpp>

#include <string>

#include "tests/integration/plugins/plugin.h"

namespace {

using namespace ddp::test;

// Refused by both ways in, with the same reason.
void check_unavailable(const std::string& word) {
  const Plugin plugin(DDP_NCCL_PLUGIN);
  const ScratchFolder folder;
  const FileStore store(folder.path());
  ddp_error_v1 error = empty_error();
  CHECK(plugin.table().available(&error) == DDP_UNAVAILABLE);
  CHECK(std::string(error.message).find(word) != std::string::npos);
  const Group group(plugin.table(), store, {0, 1, 0, 1000});
  CHECK(group.status() == DDP_UNAVAILABLE);
  CHECK(std::string(group.error().message) == error.message);
}

}  // namespace

// Each runs with an LD_LIBRARY_PATH of its own, set by ctest.
TEST_CASE("nccl: a driver that lacks functions is named", "[broken-driver]") {
  check_unavailable("libcuda.so.1 has no function");
}

TEST_CASE("nccl: an NCCL that lacks functions is named", "[broken-nccl]") {
  check_unavailable("libnccl.so.2 has no function");
}
