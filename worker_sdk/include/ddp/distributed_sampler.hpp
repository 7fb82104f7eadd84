// Which samples of a data set are this rank's in an epoch, in PyTorch's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ddp/export.hpp>

namespace ddp {
inline namespace v1 {

struct DistributedSamplerOptions {
  // Draw a new order for each epoch; false: 0, 1, 2 …
  bool shuffle = true;
  // Must be the same on every rank. As in PyTorch only the low 32 bits of seed + epoch count.
  std::int64_t seed = 0;
  // What to do with the remainder where the ranks don't divide the data set: leave it out (true),
  // or repeat samples from the front until every rank has equally many (false).
  bool drop_last = false;
};

// Divides the samples of a data set among ranks: every rank gets equally many, and together they
// cover the data set once (but for the remainder, see drop_last).
//
// The indices are those of torch.utils.data.DistributedSampler, number for number, of PyTorch 2.6
// and later (older ones differ from 214,748,364 samples on): a C++ rank and a Python rank agree on
// who has which sample.
//
//   ddp::DistributedSampler sampler(samples, group.world_size(), group.rank());
//   for (int epoch = 0; epoch < epochs; ++epoch) {
//     sampler.set_epoch(epoch);
//     for (std::size_t index : sampler.indices()) …
//   }
//
// Thread safety: that of a plain value.
class DDP_API DistributedSampler {
 public:
  // Throws InvalidUse unless 0 <= rank < world_size.
  DistributedSampler(std::size_t dataset_size, int world_size, int rank,
                     DistributedSamplerOptions options = {});

  // Chooses the epoch that indices() is for; 0 at first. All ranks must choose the same. A program
  // that never calls it gets the same order in every epoch.
  void set_epoch(std::int64_t epoch) { epoch_ = epoch; }

  // How many samples each rank gets in an epoch.
  std::size_t size() const { return size_; }

  // This rank's samples of the epoch, size() of them. With shuffle it takes time and memory in
  // proportion to the whole data set, as in PyTorch.
  std::vector<std::size_t> indices() const;

 private:
  std::size_t dataset_size_;
  std::size_t world_size_;
  std::size_t rank_;
  DistributedSamplerOptions options_;
  std::size_t size_;
  std::int64_t epoch_ = 0;
};

// The numbers 0 … count - 1 in the order of torch.randperm(count) with a CPU generator seeded with
// `seed`, of which the low 32 bits count.
DDP_API std::vector<std::size_t> random_permutation(std::size_t count, std::int64_t seed);

}  // namespace v1
}  // namespace ddp
