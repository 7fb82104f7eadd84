// How to train: what the command line can change and the trainer goes by.
#pragma once

#include <cstddef>
#include <cstdint>

namespace train_mlp {

struct TrainingPlan {
  int epochs = 16;
  std::size_t batch_size = 120;  // of all ranks together
  float learning_rate = 0.1f;    // at the start; it falls in a straight line to 0
  float momentum = 0.9f;
  float weight_decay = 2e-4f;
  // How many parts this process computes one after the other for each step. One process that
  // accumulates K parts takes the same steps as K ranks, bit for bit where sums go in rank order.
  int accumulate = 1;
  std::uint64_t seed = 1;
};

}  // namespace train_mlp
