#include "mlp.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "random_numbers.h"

namespace {

using train_mlp::Batch;
using train_mlp::Mlp;
using train_mlp::MomentumSgd;
using train_mlp::RandomNumbers;

// With this seed no unit comes near the kink of its ReLU in the comparison of derivatives.
Batch random_batch(std::size_t count, std::size_t width, std::size_t classes) {
  RandomNumbers random(97);
  Batch batch;
  for (std::size_t i = 0; i < count * width; ++i) batch.inputs.push_back(random.bell());
  for (std::size_t i = 0; i < count; ++i) {
    batch.labels.push_back(static_cast<std::uint8_t>(i % classes));
  }
  return batch;
}

double loss_with(Mlp& model, const Batch& batch, std::size_t parameter, float value) {
  const float kept = model.parameters()[parameter];
  model.parameters()[parameter] = value;
  std::vector<float> unused;
  const double loss = model.compute_gradient(batch, unused);
  model.parameters()[parameter] = kept;
  return loss;
}

void check_gradient(std::vector<std::size_t> widths) {
  CAPTURE(widths);
  const Batch batch = random_batch(6, widths.front(), widths.back());
  Mlp model(widths, 5);
  // Biases begin at 0, where a unit that gets no input would sit on the kink of its ReLU.
  RandomNumbers random(7);
  for (float& value : model.parameters()) value += random.uniform(-0.1f, 0.1f);
  std::vector<float> gradient;
  model.compute_gradient(batch, gradient);
  REQUIRE(gradient.size() == model.parameters().size());
  constexpr float kStep = 1.0f / 2048;
  double largest = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float here = model.parameters()[i];
    const double rise =
        loss_with(model, batch, i, here + kStep) - loss_with(model, batch, i, here - kStep);
    CAPTURE(i);
    CHECK(static_cast<double>(gradient[i]) == Approx(rise / (2 * kStep)).margin(1e-3));
    largest = std::max(largest, std::abs(static_cast<double>(gradient[i])));
  }
  CHECK(largest > 0.05);  // the comparison was not one of zeros
}

}  // namespace

TEST_CASE("mlp: the backward pass is the derivative of the forward pass") {
  check_gradient({5, 3});
  check_gradient({6, 9, 4});
  check_gradient({7, 6, 5, 3});
}

TEST_CASE("mlp: a model that knows nothing has the loss of a guess") {
  Mlp model({4, 10}, 1);
  std::fill(model.parameters().begin(), model.parameters().end(), 0.0f);
  std::vector<float> gradient;
  CHECK(model.compute_gradient(random_batch(20, 4, 10), gradient) == Approx(std::log(10.0)));
}

TEST_CASE("mlp: huge scores make no infinite loss") {
  Mlp model({2, 2}, 1);
  model.parameters() = {1000, -1000, 0, 0, 0, 0};
  std::vector<float> gradient;
  CHECK(model.compute_gradient(Batch{{1, 0}, {0}}, gradient) == Approx(0.0).margin(1e-12));
  CHECK(model.compute_gradient(Batch{{1, 0}, {1}}, gradient) == Approx(2000.0));
}

TEST_CASE("mlp: a gradient is overwritten, not added to, and the same bits each time") {
  const Batch batch = random_batch(7, 6, 4);
  Mlp model({6, 9, 4}, 3);
  std::vector<float> first;
  std::vector<float> second(1000, 42.0f);
  model.compute_gradient(batch, first);
  model.compute_gradient(batch, second);
  CHECK(first == second);
}

TEST_CASE("mlp: counts the samples whose own label scores highest") {
  Mlp model({2, 2}, 1);
  model.parameters() = {1, 0, 0, 1, 0, 0};  // the scores are the inputs
  CHECK(model.count_correct(Batch{{3, 1, 3, 1, 0, 2}, {0, 1, 1}}) == 2);
}

TEST_CASE("mlp: starting weights depend on the seed alone") {
  CHECK(Mlp({8, 4, 2}, 1).parameters() == Mlp({8, 4, 2}, 1).parameters());
  CHECK(Mlp({8, 4, 2}, 1).parameters() != Mlp({8, 4, 2}, 2).parameters());
}

TEST_CASE("momentum sgd: two steps by hand") {
  std::vector<float> parameters{1.0f};
  MomentumSgd optimizer(1, 0.5f, 0.25f);
  optimizer.step(parameters, {2.0f}, 0.5f);  // velocity 2 + 0.25 · 1
  CHECK(parameters[0] == 1.0f - 0.5f * 2.25f);
  optimizer.step(parameters, {0.0f}, 1.0f);  // velocity 2.25 / 2 + 0.25 · (−0.125)
  CHECK(parameters[0] == -0.125f - (1.125f - 0.03125f));
}
