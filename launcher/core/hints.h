// What to do about a failure whose kind is known: one line, from what the worker and the kernel
// have said.
#pragma once

#include <string>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

struct HintContext {
  std::string interpreter;  // the Python that runs the workers; empty: they are no Python programs
};

// Empty where nothing is known. Texts of any bytes and length.
[[nodiscard]] std::string hint_for(const rendezvous::Failure& failure, const HintContext& context);

}  // namespace ddp::launcher
