// An all_reduce over Gloo's point-to-point messages that reduces in rank order, as the
// shared-memory backend does.
#pragma once

#include <gloo/context.h>

#include <cstdint>
#include <memory>

#include "worker_sdk/backends/seam.h"
#include "worker_sdk/core/reduce.h"

namespace ddp::backends {

struct OrderedReduction {
  sdk::ReduceFunction reduce = nullptr;
  size_t element_size = 0;
  const void* input = nullptr;  // May equal output.
  void* output = nullptr;
  size_t count = 0;
  uint64_t sequence = 0;
};

// Each rank reduces one chunk, ((x0 + x1) + x2) …, from what all others send it, and sends the
// result to all. So all ranks get the same bits, and the bits do not depend on the backend. The
// bytes that a rank sends are those of a ring, 2 (n-1)/n of the buffer; the steps are 2, not 2
// (n-1). Gloo's own ring starts each chunk at another rank. Every rank must call it with the same
// type and count: Gloo ends the process otherwise.
void ordered_all_reduce(const std::shared_ptr<gloo::Context>& context,
                        const OrderedReduction& reduction, const Deadline& deadline);

}  // namespace ddp::backends
