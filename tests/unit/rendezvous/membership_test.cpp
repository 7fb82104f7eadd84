#include "rendezvous/core/membership.h"

#include <catch2/catch.hpp>

namespace ddp::rendezvous::test {

TEST_CASE("membership: an endpoint for people can be pasted back") {
  CHECK(text_of({"head", Port{29500}}) == "head:29500");
  CHECK(text_of({"10.0.0.1", Port{1}}) == "10.0.0.1:1");
  CHECK(text_of({"fd00::1", Port{29500}}) == "[fd00::1]:29500");
}

}  // namespace ddp::rendezvous::test
