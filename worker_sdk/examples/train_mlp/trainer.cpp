#include "trainer.h"

#include <algorithm>

#include <ddp/distributed_sampler.hpp>

namespace train_mlp {

Batch make_batch(const DigitSet& digits, const std::size_t* indices, std::size_t count) {
  constexpr float kMeanInk = 0.12f;
  Batch batch;
  batch.inputs.resize(count * kImagePixels);
  batch.labels.resize(count);
  for (std::size_t row = 0; row < count; ++row) {
    const std::uint8_t* image = digits.image(indices[row]);
    float* input = &batch.inputs[row * kImagePixels];
    for (std::size_t i = 0; i < kImagePixels; ++i) {
      input[i] = static_cast<float>(image[i]) * (1.0f / 255.0f) - kMeanInk;
    }
    batch.labels[row] = digits.labels[indices[row]];
  }
  return batch;
}

double Trainer::compute_step_gradient(Mlp& model,
                                      const std::vector<std::vector<std::size_t>>& parts,
                                      std::size_t step) {
  const std::size_t all_parts = parts.size() * static_cast<std::size_t>(group_.world_size());
  const std::size_t part = part_size(plan_.batch_size, all_parts);
  const std::size_t begin = step * part;
  double loss = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::size_t count = std::min(part, parts[k].size() - begin);
    const Batch batch = make_batch(train_, &parts[k][begin], count);
    if (k == 0) {
      loss += model.compute_gradient(batch, bucket_);
      continue;
    }
    // Summed first and divided once, in the order in which all_reduce does it over ranks.
    loss += model.compute_gradient(batch, part_gradient_);
    for (std::size_t i = 0; i < bucket_.size(); ++i) bucket_[i] += part_gradient_[i];
  }
  const auto divisor = static_cast<float>(parts.size());
  for (float& value : bucket_) value /= divisor;
  return loss / static_cast<double>(parts.size());
}

std::size_t Trainer::count_own_correct(Mlp& model) const {
  constexpr std::size_t kChunk = 250;
  std::vector<std::size_t> own;
  const auto world = static_cast<std::size_t>(group_.world_size());
  for (auto i = static_cast<std::size_t>(group_.rank()); i < test_.size(); i += world) {
    own.push_back(i);
  }
  std::size_t correct = 0;
  for (std::size_t begin = 0; begin < own.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, own.size() - begin);
    correct += model.count_correct(make_batch(test_, &own[begin], count));
  }
  return correct;
}

double Trainer::train(Mlp& model, const TrainingObserver& observer) {
  group_.broadcast(model.parameters(), 0);
  MomentumSgd optimizer(model.parameters().size(), plan_.momentum, plan_.weight_decay);
  std::vector<ddp::DistributedSampler> samplers;
  for (int k = 0; k < plan_.accumulate; ++k) {
    samplers.emplace_back(
        train_.size(), group_.world_size() * plan_.accumulate, group_.rank() * plan_.accumulate + k,
        ddp::DistributedSamplerOptions{true, static_cast<std::int64_t>(plan_.seed)});
  }
  const std::size_t all_parts = samplers.size() * static_cast<std::size_t>(group_.world_size());
  const std::size_t part = part_size(plan_.batch_size, all_parts);
  const std::size_t steps = (samplers.front().size() + part - 1) / part;
  const float all_steps = static_cast<float>(steps) * static_cast<float>(plan_.epochs);
  float steps_taken = 0;
  double accuracy = 0;
  for (int epoch = 0; epoch < plan_.epochs; ++epoch) {
    std::vector<std::vector<std::size_t>> parts;
    for (ddp::DistributedSampler& sampler : samplers) {
      sampler.set_epoch(epoch);
      parts.push_back(sampler.indices());
    }
    double loss = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      loss += compute_step_gradient(model, parts, step);
      group_.all_reduce(bucket_, ddp::ReduceOp::avg);
      const float rate = plan_.learning_rate * (1 - steps_taken / all_steps);
      optimizer.step(model.parameters(), bucket_, rate);
      steps_taken += 1;
      if (observer.on_step) observer.on_step(epoch + 1, step + 1, steps);
    }
    std::vector<double> sums{loss / static_cast<double>(steps),
                             static_cast<double>(count_own_correct(model))};
    group_.all_reduce(sums, ddp::ReduceOp::sum);
    accuracy = sums[1] / static_cast<double>(test_.size());
    if (observer.on_epoch) observer.on_epoch({epoch + 1, sums[0] / group_.world_size(), accuracy});
  }
  return accuracy;
}

}  // namespace train_mlp
