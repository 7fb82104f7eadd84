// The two ways in which PyTorch shuffles, chosen by the count; random_permutation() picks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddp::sdk {

// From this count on PyTorch (2.6 and later) draws 64 bits at a time: a remainder of 32 random bits
// would favour small numbers too much.
inline constexpr std::size_t kWideShuffleFrom = 214748364;

std::vector<std::size_t> narrow_shuffle(std::size_t count, std::uint32_t seed);
std::vector<std::size_t> wide_shuffle(std::size_t count, std::uint32_t seed);

}  // namespace ddp::sdk
