// The arithmetic of all_reduce: several arrays become one, element by element, always in the order
// of the ranks.
#pragma once

#include <cstddef>

#include <ddp/types.hpp>

namespace ddp::sdk {

struct Reduction {
  const void* const* inputs = nullptr;  // one array per rank, in rank order
  std::size_t ranks = 0;                // at least 1
  std::size_t count = 0;                // elements of each
  void* output = nullptr;               // may be one of the inputs
  void* second_output = nullptr;        // gets the same; may be null, must be none of the inputs
};

using ReduceFunction = void (*)(const Reduction&);

// Null where the operation makes no sense for the type, or the type is not known.
[[nodiscard]] ReduceFunction find_reduction(DataType type, ReduceOp op);

}  // namespace ddp::sdk
