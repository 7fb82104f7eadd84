// Random numbers that are the same on every machine and with every standard library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace train_mlp {

// SplitMix64. The distributions of <random> may differ between libraries; these use only exact
// arithmetic, so that every rank, on whatever host, draws the same data and starting weights.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1).
  float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-24f; }
  // Uniform in [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // True with the given probability.
  bool chance(float probability) { return uniform() < probability; }
  // Uniform in [0, count).
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(bits() % count); }
  // Bell-shaped with mean 0 and variance 1: the four 16-bit parts of one draw, added.
  float bell() {
    const std::uint64_t draw = bits();
    std::uint32_t sum = 0;
    for (int shift = 0; shift < 64; shift += 16)
      sum += static_cast<std::uint32_t>((draw >> shift) & 0xffffu);
    constexpr float kHalfRange = 2.0f * 65535.0f;
    constexpr float kSqrtThree = 1.7320508f;  // the sum of four uniforms has variance 4/12
    return (static_cast<float>(sum) - kHalfRange) / 65535.0f * kSqrtThree;
  }

 private:
  std::uint64_t state_;
};

// A seed made of three numbers, for streams that must not overlap.
inline std::uint64_t mix_seed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  RandomNumbers first(a);
  RandomNumbers second(first.bits() ^ b);
  RandomNumbers third(second.bits() ^ c);
  return third.bits();
}

}  // namespace train_mlp
