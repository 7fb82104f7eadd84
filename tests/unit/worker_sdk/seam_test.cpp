// What the plug-ins share at the C seam.
#include "worker_sdk/backends/seam.h"

#include <catch2/catch.hpp>
#include <string>

namespace ddp::backends {
namespace {

TEST_CASE("seam: a timeout is written as people write it") {
  CHECK(in_seconds(Milliseconds(1'800'000)) == "1800 s");
  CHECK(in_seconds(Milliseconds(1'500)) == "1.5 s");
}

TEST_CASE("seam: no exception crosses it, and the text is always ended") {
  ddp_error_v1 error{};
  const std::string longest(5000, 'x');
  CHECK(fenced(&error, [&] { throw Failure(DDP_PEER_LOST, longest, 3); }) == DDP_PEER_LOST);
  CHECK(error.rank == 3);
  CHECK(std::string(error.message) == std::string(sizeof error.message - 1, 'x'));
  CHECK(fenced(&error, [] { throw 1; }) == DDP_UNAVAILABLE);
  CHECK(fenced(nullptr, [] { throw Failure(DDP_TIMEOUT, "late"); }) == DDP_TIMEOUT);
  CHECK(fenced(&error, [] {}) == DDP_OK);
}

}  // namespace
}  // namespace ddp::backends
