#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include "worker_sdk/backends/gloo/agreement.h"

namespace {

using ddp::backends::Agreement;
using ddp::backends::merge;
using ddp::sdk::Fingerprint;

Fingerprint counting(uint64_t count) {
  Fingerprint print;
  print.count = count;
  return print;
}

// What the ranks in `order` know together, rank r having called with counts[r].
Agreement known_by(const std::vector<int>& order, const std::vector<uint64_t>& counts) {
  const auto view = [&](int rank) {
    return Agreement::of(counting(counts[static_cast<size_t>(rank)]), rank);
  };
  Agreement known = view(order.front());
  for (const int rank : order) known = merge(known, view(rank));
  return known;
}

}  // namespace

TEST_CASE("agreement: ranks that call the same agree") {
  CHECK(known_by({0, 1, 2, 3}, {7, 7, 7, 7}).agreed());
  CHECK(known_by({0}, {7}).agreed());
}

TEST_CASE("agreement: the lowest rank and the lowest that differs are named, whatever the order") {
  const std::vector<uint64_t> counts = {5, 5, 9, 8, 5};
  std::vector<int> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    const Agreement known = known_by(order, counts);
    REQUIRE(known.lowest_rank == 0);
    REQUIRE(known.odd_rank == 2);
    REQUIRE(known.lowest.count == 5);
    REQUIRE(known.odd.count == 9);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("agreement: hearing of the same ranks twice changes nothing") {
  const Agreement left = known_by({1, 2}, {5, 5, 9});
  const Agreement right = known_by({2, 0}, {5, 5, 9});
  const Agreement both = merge(left, right);
  const Agreement again = merge(both, merge(right, left));
  CHECK(again.odd_rank == both.odd_rank);
  CHECK(again.lowest_rank == both.lowest_rank);
  CHECK(again.odd == both.odd);
  CHECK(again.lowest == both.lowest);
}
