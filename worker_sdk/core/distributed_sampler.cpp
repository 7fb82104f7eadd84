#include <numeric>
#include <random>
#include <string>
#include <utility>

#include <ddp/distributed_sampler.hpp>
#include <ddp/error.hpp>

#include "worker_sdk/core/random_permutation.h"

namespace ddp {
namespace sdk {

// The bias of the remainder is kept on purpose: without it the numbers would not be PyTorch's.
std::vector<std::size_t> narrow_shuffle(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::size_t ahead = generator() % (count - i);
    std::swap(order[i], order[i + ahead]);
  }
  return order;
}

std::vector<std::size_t> wide_shuffle(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t high = generator();
    const std::uint64_t low = generator();
    const std::size_t place = ((high << 32) | low) % (i + 1);
    order[i] = order[place];
    order[place] = i;
  }
  return order;
}

}  // namespace sdk

inline namespace v1 {
namespace {

std::size_t share_of(std::size_t count, std::size_t ranks, bool drop_last) {
  return count / ranks + (!drop_last && count % ranks != 0 ? 1 : 0);
}

std::size_t checked_world(int world_size, int rank) {
  if (world_size < 1 || rank < 0 || rank >= world_size) {
    throw InvalidUse("DistributedSampler: there is no rank " + std::to_string(rank) +
                     " in a world of " + std::to_string(world_size) +
                     "; ranks go from 0 to the world size less one.");
  }
  return static_cast<std::size_t>(world_size);
}

}  // namespace

std::vector<std::size_t> random_permutation(std::size_t count, std::int64_t seed) {
  const auto low_bits = static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed));
  return count < sdk::kWideShuffleFrom ? sdk::narrow_shuffle(count, low_bits)
                                       : sdk::wide_shuffle(count, low_bits);
}

DistributedSampler::DistributedSampler(std::size_t dataset_size, int world_size, int rank,
                                       DistributedSamplerOptions options)
    : dataset_size_(dataset_size),
      world_size_(checked_world(world_size, rank)),
      rank_(static_cast<std::size_t>(rank)),
      options_(options),
      size_(share_of(dataset_size, world_size_, options.drop_last)) {}

std::vector<std::size_t> DistributedSampler::indices() const {
  std::vector<std::size_t> order;
  if (options_.shuffle) {
    // Added as unsigned, so that it wraps around: only the low bits count.
    const auto seed =
        static_cast<std::uint64_t>(options_.seed) + static_cast<std::uint64_t>(epoch_);
    order = random_permutation(dataset_size_, static_cast<std::int64_t>(seed));
  }
  std::vector<std::size_t> own(size_);
  for (std::size_t k = 0; k < size_; ++k) {
    // Past the end it begins again at the front, as often as it takes.
    const std::size_t place = (rank_ + k * world_size_) % dataset_size_;
    own[k] = options_.shuffle ? order[place] : place;
  }
  return own;
}

}  // namespace v1
}  // namespace ddp
