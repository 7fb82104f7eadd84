#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

#include <ddp/distributed_sampler.hpp>
#include <ddp/error.hpp>

#include "worker_sdk/core/random_permutation.h"

namespace {

using ddp::DistributedSampler;
using ddp::DistributedSamplerOptions;
using ddp::random_permutation;
using Indices = std::vector<std::size_t>;

// Numbers got from torch.randperm and torch.utils.data.DistributedSampler.
struct GoldenPermutation {
  std::size_t count;
  std::int64_t seed;
  Indices first;
  Indices last;
};

Indices first_of(const Indices& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

Indices last_of(const Indices& all, std::size_t count) {
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

Indices share(std::size_t samples, int world, int rank, DistributedSamplerOptions options = {},
              std::int64_t epoch = 0) {
  DistributedSampler sampler(samples, world, rank, options);
  sampler.set_epoch(epoch);
  return sampler.indices();
}

constexpr DistributedSamplerOptions kInOrder{false, 0, false};
constexpr DistributedSamplerOptions kDropLast{true, 0, true};

}  // namespace

TEST_CASE("random_permutation: the numbers of torch.randperm") {
  const std::int64_t two_to_32 = std::int64_t{1} << 32;
  CHECK(random_permutation(10, 0) == Indices{4, 1, 7, 5, 3, 9, 0, 8, 6, 2});
  CHECK(random_permutation(10, 1) == Indices{5, 6, 1, 2, 0, 8, 9, 3, 7, 4});
  CHECK(random_permutation(10, 42) == Indices{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  CHECK(random_permutation(10, two_to_32) == random_permutation(10, 0));
  CHECK(random_permutation(10, two_to_32 + 5) == Indices{1, 4, 9, 6, 3, 5, 0, 2, 8, 7});
  CHECK(random_permutation(10, -1) == Indices{1, 4, 6, 2, 0, 5, 8, 7, 9, 3});
  CHECK(random_permutation(0, 0).empty());
  CHECK(random_permutation(1, 0) == Indices{0});
  CHECK(random_permutation(2, 0) == Indices{0, 1});
  CHECK(random_permutation(3, 0) == Indices{2, 0, 1});
  CHECK(random_permutation(7, 0) == Indices{4, 0, 5, 3, 2, 6, 1});
  CHECK(random_permutation(16, 0) == Indices{12, 10, 9, 6, 11, 8, 13, 5, 2, 14, 15, 0, 4, 3, 7, 1});
  CHECK(random_permutation(20, 0) ==
        Indices{4, 5, 13, 19, 7, 14, 3, 6, 9, 17, 11, 2, 16, 18, 10, 12, 15, 8, 1, 0});
}

TEST_CASE("random_permutation: the numbers of torch.randperm for whole data sets") {
  const std::vector<GoldenPermutation> golden{
      {1000, 0, {44, 37, 675, 775, 947, 209, 719, 500}, {932, 745, 263, 354}},
      {50000, 7, {41615, 33421, 9717, 7492, 3935, 5537}, {43754, 48465, 23688, 13711}},
      {1000003, 123, {303409, 113666, 957876, 268613}, {652158, 124420, 887198, 578537}},
      {1281167, 0, {1069931, 571398, 762430, 399643}, {1074376, 615438, 152445, 922209}},
  };
  for (const GoldenPermutation& expected : golden) {
    CAPTURE(expected.count, expected.seed);
    const Indices order = random_permutation(expected.count, expected.seed);
    REQUIRE(order.size() == expected.count);
    CHECK(first_of(order, expected.first.size()) == expected.first);
    CHECK(last_of(order, expected.last.size()) == expected.last);
  }
}

// Its real counts would need gigabytes. The expected numbers come from the algorithm written anew
// in Python, Mersenne Twister included.
TEST_CASE("random_permutation: huge data sets are shuffled with 64-bit draws") {
  CHECK(ddp::sdk::kWideShuffleFrom == UINT32_MAX / 20);
  CHECK(ddp::sdk::wide_shuffle(1, 0) == Indices{0});
  CHECK(ddp::sdk::wide_shuffle(10, 0) == Indices{8, 2, 6, 3, 5, 1, 0, 9, 7, 4});
  CHECK(ddp::sdk::wide_shuffle(10, 42) == Indices{6, 0, 5, 8, 7, 2, 3, 1, 9, 4});
  const Indices order = ddp::sdk::wide_shuffle(1000, 7);
  CHECK(first_of(order, 6) == Indices{856, 54, 721, 290, 571, 805});
  CHECK(last_of(order, 4) == Indices{508, 857, 753, 173});
}

TEST_CASE("sampler: gives each rank what PyTorch's gives it") {
  CHECK(share(10, 4, 0) == Indices{4, 3, 6});
  CHECK(share(10, 4, 1) == Indices{1, 9, 2});
  CHECK(share(10, 4, 2) == Indices{7, 0, 4});
  CHECK(share(10, 4, 3) == Indices{5, 8, 1});

  const DistributedSamplerOptions seed_five{true, 5, false};
  CHECK(share(11, 3, 0, seed_five, 2) == Indices{3, 2, 4, 7});
  CHECK(share(11, 3, 1, seed_five, 2) == Indices{0, 5, 10, 6});
  CHECK(share(11, 3, 2, seed_five, 2) == Indices{9, 8, 1, 3});
}

TEST_CASE("sampler: drop_last leaves the remainder out") {
  CHECK(share(10, 4, 0, kDropLast) == Indices{4, 3});
  CHECK(share(10, 4, 1, kDropLast) == Indices{1, 9});
  CHECK(share(10, 4, 2, kDropLast) == Indices{7, 0});
  CHECK(share(10, 4, 3, kDropLast) == Indices{5, 8});
  CHECK(share(3, 8, 0, kDropLast).empty());
  CHECK(share(12, 4, 0, kDropLast) == share(12, 4, 0));
}

TEST_CASE("sampler: without shuffle the ranks take turns") {
  CHECK(share(10, 4, 0, kInOrder) == Indices{0, 4, 8});
  CHECK(share(10, 4, 1, kInOrder) == Indices{1, 5, 9});
  CHECK(share(10, 4, 2, kInOrder) == Indices{2, 6, 0});
  CHECK(share(10, 4, 3, kInOrder) == Indices{3, 7, 1});
}

TEST_CASE("sampler: with more ranks than samples the samples are repeated as often as it takes") {
  const Indices expected{1, 2, 0, 1, 2, 0, 1, 2};
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(share(3, 8, rank, {}, 1) == Indices{expected[static_cast<std::size_t>(rank)]});
  }
  CHECK(share(0, 8, 3).empty());
}

TEST_CASE("sampler: all ranks together cover the data set, each with equally many") {
  for (const std::size_t samples : {1u, 7u, 64u, 1000u}) {
    for (const int world : {1, 2, 3, 5, 8}) {
      CAPTURE(samples, world);
      std::set<std::size_t> seen;
      for (int rank = 0; rank < world; ++rank) {
        const DistributedSampler sampler(samples, world, rank);
        const Indices own = sampler.indices();
        CHECK(own.size() == sampler.size());
        CHECK(own.size() == (samples + world - 1) / world);
        seen.insert(own.begin(), own.end());
      }
      CHECK(seen.size() == samples);
      CHECK(*seen.rbegin() == samples - 1);
    }
  }
}

TEST_CASE("sampler: an epoch has its own order, which is the same each time it is asked for") {
  DistributedSampler sampler(100, 2, 1);
  const Indices epoch_0 = sampler.indices();
  CHECK(sampler.indices() == epoch_0);
  sampler.set_epoch(1);
  const Indices epoch_1 = sampler.indices();
  CHECK(epoch_1 != epoch_0);
  CHECK(epoch_1 == share(100, 2, 1, {true, 1, false}));  // seed and epoch are added
  sampler.set_epoch(0);
  CHECK(sampler.indices() == epoch_0);
}

TEST_CASE("sampler: seed and epoch wrap around instead of overflowing") {
  CHECK(share(10, 1, 0, {true, INT64_MAX, false}, 1) == random_permutation(10, INT64_MIN));
  CHECK(share(10, 1, 0, {true, -3, false}, 3) == random_permutation(10, 0));
}

TEST_CASE("sampler: refuses a rank that is not in the world") {
  CHECK_THROWS_AS(DistributedSampler(10, 4, 4), ddp::InvalidUse);
  CHECK_THROWS_AS(DistributedSampler(10, 4, -1), ddp::InvalidUse);
  CHECK_THROWS_AS(DistributedSampler(10, 0, 0), ddp::InvalidUse);
  CHECK_THROWS_WITH(DistributedSampler(10, 4, 7),
                    Catch::Contains("no rank 7") && Catch::Contains("a world of 4"));
}
