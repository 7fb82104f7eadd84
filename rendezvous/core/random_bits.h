// Numbers that look random and are a function of a seed: machines draw from it, so that a run can
// be repeated.
#pragma once

#include <cstdint>

namespace ddp::rendezvous {

// SplitMix64. Not for secrets.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
  }
  // 0 … bound-1. The bias is below 2^-32 for any bound that fits in 32 bits.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace ddp::rendezvous
