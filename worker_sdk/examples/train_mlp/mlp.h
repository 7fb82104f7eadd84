// A multilayer perceptron with hand-written forward and backward passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace train_mlp {

// Some samples, one after the other: `labels.size()` rows of the model's input width.
struct Batch {
  std::vector<float> inputs;
  std::vector<std::uint8_t> labels;

  [[nodiscard]] std::size_t size() const { return labels.size(); }
};

// Fully connected layers with ReLU between them and softmax cross entropy at the end. Widths {256,
// 10} make a linear model, {256, 128, 10} one with a hidden layer.
//
// All parameters lie in one vector, and a gradient is a vector of the same layout, so that one
// all_reduce averages the whole model. Every sum is taken in a fixed order: the same parameters and
// the same batch give the same bits.
class Mlp {
 public:
  // At least two widths. Starting weights depend only on the widths and the seed.
  Mlp(std::vector<std::size_t> widths, std::uint64_t seed);

  [[nodiscard]] std::vector<float>& parameters() { return parameters_; }
  [[nodiscard]] const std::vector<float>& parameters() const { return parameters_; }

  // Overwrites `gradient` with that of the batch's mean loss, and returns the mean loss.
  double compute_gradient(const Batch& batch, std::vector<float>& gradient);

  // How many samples get their highest score at their own label.
  std::size_t count_correct(const Batch& batch);

 private:
  struct Layer {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    std::size_t weights = 0;  // place of the first weight in parameters_; [inputs][outputs]
    std::size_t biases = 0;
  };

  void forward(const Batch& batch);
  double softmax_loss(const Batch& batch);
  void backward(const Batch& batch, std::vector<float>& gradient);

  std::vector<Layer> layers_;
  std::vector<float> parameters_;
  std::vector<std::vector<float>> activations_;  // output of each layer, for the current batch
  std::vector<float> error_;  // gradient of the loss by the current layer's output
  std::vector<float> next_error_;
  std::vector<float> transposed_;
};

// Stochastic gradient descent with momentum and weight decay, as PyTorch's SGD defines them.
class MomentumSgd {
 public:
  MomentumSgd(std::size_t parameters, float momentum, float weight_decay)
      : velocity_(parameters, 0.0f), momentum_(momentum), weight_decay_(weight_decay) {}

  void step(std::vector<float>& parameters, const std::vector<float>& gradient, float rate);

 private:
  std::vector<float> velocity_;
  float momentum_;
  float weight_decay_;
};

}  // namespace train_mlp
