// Data-parallel training: every rank computes the gradient of its share, all take the same step.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ddp/ddp.hpp>

#include "mlp.h"
#include "stroke_digits.h"
#include "training_plan.h"

namespace train_mlp {

struct EpochResult {
  int epoch = 0;  // from 1
  double loss = 0;
  double test_accuracy = 0;
};

// Both are called on every rank.
struct TrainingObserver {
  std::function<void(int epoch, std::size_t step, std::size_t steps)> on_step;
  std::function<void(const EpochResult&)> on_epoch;
};

// Samples of `digits` as rows of numbers from about -0.1 to 0.9.
Batch make_batch(const DigitSet& digits, const std::size_t* indices, std::size_t count);

// How many samples each of `parts` gets of a batch: equally many, so rounded up.
inline std::size_t part_size(std::size_t batch_size, std::size_t parts) {
  return (batch_size + parts - 1) / parts;
}

class Trainer {
 public:
  // Keeps references to all but the plan.
  Trainer(ddp::ProcessGroup& group, const DigitSet& train, const DigitSet& test,
          const TrainingPlan& plan)
      : group_(group), train_(train), test_(test), plan_(plan) {}

  // Trains `model`, which all ranks begin with rank 0's parameters and end with the same ones.
  // Returns the accuracy on the test set. Collective.
  double train(Mlp& model, const TrainingObserver& observer = {});

 private:
  double compute_step_gradient(Mlp& model, const std::vector<std::vector<std::size_t>>& parts,
                               std::size_t step);
  std::size_t count_own_correct(Mlp& model) const;

  ddp::ProcessGroup& group_;
  const DigitSet& train_;
  const DigitSet& test_;
  TrainingPlan plan_;
  std::vector<float> bucket_;  // the whole gradient, averaged in one all_reduce
  std::vector<float> part_gradient_;
};

}  // namespace train_mlp
