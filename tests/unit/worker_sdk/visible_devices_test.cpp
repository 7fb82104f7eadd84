#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker_sdk/core/visible_devices.h"

namespace {

using ddp::sdk::count_visible_devices;
using Uuids = std::vector<std::string>;

const Uuids kThree = {"GPU-8932f937-d72c", "GPU-8932aaaa-0001", "GPU-11112222-0002"};

struct Row {
  std::optional<std::string_view> variable;
  int count;
  const char* what;
};

}  // namespace

TEST_CASE("visible devices: the list is read as the CUDA driver reads it") {
  const Row rows[] = {
      {std::nullopt, 3, "not set: all"},
      {"", 0, "empty: none"},
      {"0", 1, "one"},
      {"0,1,2", 3, "all by number"},
      {"2,0", 2, "any order"},
      {"-1", 0, "-1 hides all"},
      {"1,-1,0", 1, "-1 ends the list"},
      {"0,7,1", 1, "a number that no GPU has ends the list"},
      {"3", 0, "one past the last"},
      {"0,x,1", 1, "a word ends the list"},
      {"NoDevFiles", 0, "what some batch systems write"},
      {" 1, 2", 2, "blanks before a number"},
      {"1gpu,2ampere", 2, "what follows a number is ignored"},
      {"+1", 1, "a sign"},
      {"0,,1", 1, "an empty entry ends the list"},
      {"0,1,0", 0, "a GPU named twice hides all"},
      {"99999999999999999999", 0, "a number too large for an int"},
      {"GPU-11112222-0002", 1, "a UUID"},
      {"GPU-1", 1, "a UUID cut short"},
      {"GPU-8932", 0, "cut so short that two fit"},
      {"GPU-8932f,GPU-8932a", 2, "two UUIDs"},
      {"GPU-8932f,GPU-ffff,GPU-1", 1, "an unknown UUID ends the list"},
      {"GPU-1,0", 1, "a number among UUIDs ends the list"},
      {"0,GPU-1", 1, "a UUID among numbers ends the list"},
      {"GPU-1,GPU-1111", 0, "one GPU by two names hides all"},
      {"MIG-a,MIG-b", 1, "of MIG instances a process gets one"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const auto visible = count_visible_devices(row.variable, kThree);
    CHECK(visible.count == row.count);
    CHECK(visible.reason.empty() == (row.count > 0));
  }
}

TEST_CASE("visible devices: a host without GPUs has none, whatever the variable says") {
  for (const std::optional<std::string_view>& variable :
       {std::optional<std::string_view>(), std::optional<std::string_view>("0"),
        std::optional<std::string_view>("MIG-a")}) {
    CHECK(count_visible_devices(variable, {}).count == 0);
    CHECK(count_visible_devices(variable, {}).reason == "the NVIDIA driver shows no GPU");
  }
}

TEST_CASE("visible devices: the reason says what the variable was and what the host has") {
  CHECK(count_visible_devices("4,5", kThree).reason ==
        "CUDA_VISIBLE_DEVICES=4,5 begins with no GPU of this host, which has 3 GPUs (0 to 2)");
  CHECK(count_visible_devices("1", {"GPU-1"}).reason ==
        "CUDA_VISIBLE_DEVICES=1 begins with no GPU of this host, which has one GPU (0)");
}
