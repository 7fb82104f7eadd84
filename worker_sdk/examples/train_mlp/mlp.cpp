#include "mlp.h"

#include <algorithm>
#include <cmath>

#include "random_numbers.h"

namespace train_mlp {
namespace {

// A matrix somewhere else: element (row, column) is at row * row_step + column * column_step.
struct MatrixView {
  const float* data;
  std::size_t row_step;
  std::size_t column_step;

  [[nodiscard]] float at(std::size_t row, std::size_t column) const {
    return data[row * row_step + column * column_step];
  }
};

struct Shape {
  std::size_t rows;
  std::size_t inner;
  std::size_t columns;
};

// c += a · b. Both c and b are dense, row by row. The inner loop runs along rows, so that compilers
// vectorise it without changing the order in which any one element's terms are added.
void multiply_add(float* c, MatrixView a, const float* b, Shape shape) {
  const std::size_t n = shape.columns;
  for (std::size_t row = 0; row < shape.rows; ++row) {
    float* __restrict out = c + row * n;
    std::size_t k = 0;
    for (; k + 4 <= shape.inner; k += 4) {
      const float a0 = a.at(row, k);
      const float a1 = a.at(row, k + 1);
      const float a2 = a.at(row, k + 2);
      const float a3 = a.at(row, k + 3);
      const float* __restrict b0 = b + k * n;
      for (std::size_t j = 0; j < n; ++j) {
        out[j] = out[j] + a0 * b0[j] + a1 * b0[n + j] + a2 * b0[2 * n + j] + a3 * b0[3 * n + j];
      }
    }
    for (; k < shape.inner; ++k) {
      const float a0 = a.at(row, k);
      const float* __restrict b0 = b + k * n;
      for (std::size_t j = 0; j < n; ++j) out[j] += a0 * b0[j];
    }
  }
}

}  // namespace

Mlp::Mlp(std::vector<std::size_t> widths, std::uint64_t seed) {
  std::size_t place = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Layer layer{widths[i], widths[i + 1], place, place + widths[i] * widths[i + 1]};
    place = layer.biases + layer.outputs;
    layers_.push_back(layer);
  }
  parameters_.assign(place, 0.0f);
  activations_.resize(layers_.size());
  RandomNumbers random(mix_seed(seed, 20, widths.size()));
  for (const Layer& layer : layers_) {
    const float bound = std::sqrt(6.0f / static_cast<float>(layer.inputs));
    for (std::size_t i = layer.weights; i < layer.biases; ++i) {
      parameters_[i] = random.uniform(-bound, bound);
    }
  }
}

void Mlp::forward(const Batch& batch) {
  const float* input = batch.inputs.data();
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    std::vector<float>& output = activations_[l];
    output.resize(batch.size() * layer.outputs);
    const float* bias = &parameters_[layer.biases];
    for (std::size_t row = 0; row < batch.size(); ++row) {
      std::copy(bias, bias + layer.outputs, &output[row * layer.outputs]);
    }
    multiply_add(output.data(), {input, layer.inputs, 1}, &parameters_[layer.weights],
                 {batch.size(), layer.inputs, layer.outputs});
    if (l + 1 < layers_.size()) {
      for (float& value : output) value = std::max(value, 0.0f);
    }
    input = output.data();
  }
}

double Mlp::softmax_loss(const Batch& batch) {
  const std::size_t classes = layers_.back().outputs;
  const std::vector<float>& scores = activations_.back();
  const double share = 1.0 / static_cast<double>(batch.size());
  error_.resize(scores.size());
  std::vector<double> weight(classes);
  double loss = 0;
  for (std::size_t row = 0; row < batch.size(); ++row) {
    const float* score = &scores[row * classes];
    const float highest = *std::max_element(score, score + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      weight[c] = std::exp(static_cast<double>(score[c]) - static_cast<double>(highest));
      sum += weight[c];
    }
    const std::size_t label = batch.labels[row];
    // Not as the logarithm of a probability, which may be too small for a double.
    loss += std::log(sum) + static_cast<double>(highest) - static_cast<double>(score[label]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double target = c == label ? 1.0 : 0.0;
      error_[row * classes + c] = static_cast<float>((weight[c] / sum - target) * share);
    }
  }
  return loss * share;
}

void Mlp::backward(const Batch& batch, std::vector<float>& gradient) {
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* input = l == 0 ? batch.inputs.data() : activations_[l - 1].data();
    // input as its own transpose: element (i, row) of it is input[row * inputs + i].
    multiply_add(&gradient[layer.weights], {input, 1, layer.inputs}, error_.data(),
                 {layer.inputs, batch.size(), layer.outputs});
    for (std::size_t row = 0; row < batch.size(); ++row) {
      for (std::size_t j = 0; j < layer.outputs; ++j) {
        gradient[layer.biases + j] += error_[row * layer.outputs + j];
      }
    }
    if (l == 0) return;
    transposed_.resize(layer.inputs * layer.outputs);
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      for (std::size_t j = 0; j < layer.outputs; ++j) {
        transposed_[j * layer.inputs + i] = parameters_[layer.weights + i * layer.outputs + j];
      }
    }
    next_error_.assign(batch.size() * layer.inputs, 0.0f);
    multiply_add(next_error_.data(), {error_.data(), layer.outputs, 1}, transposed_.data(),
                 {batch.size(), layer.outputs, layer.inputs});
    for (std::size_t i = 0; i < next_error_.size(); ++i) {
      if (input[i] <= 0) next_error_[i] = 0;
    }
    error_.swap(next_error_);
  }
}

double Mlp::compute_gradient(const Batch& batch, std::vector<float>& gradient) {
  gradient.assign(parameters_.size(), 0.0f);
  forward(batch);
  const double loss = softmax_loss(batch);
  backward(batch, gradient);
  return loss;
}

std::size_t Mlp::count_correct(const Batch& batch) {
  forward(batch);
  const std::size_t classes = layers_.back().outputs;
  std::size_t correct = 0;
  for (std::size_t row = 0; row < batch.size(); ++row) {
    const float* score = &activations_.back()[row * classes];
    const auto best = std::max_element(score, score + classes) - score;
    if (best == static_cast<std::ptrdiff_t>(batch.labels[row])) ++correct;
  }
  return correct;
}

void MomentumSgd::step(std::vector<float>& parameters, const std::vector<float>& gradient,
                       float rate) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity_[i] = momentum_ * velocity_[i] + (gradient[i] + weight_decay_ * parameters[i]);
    parameters[i] -= rate * velocity_[i];
  }
}

}  // namespace train_mlp
