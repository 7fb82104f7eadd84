// Which of a worker's last words are shown to people: the telling ones, few and short.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/membership.h"

namespace ddp::launcher {

struct WorkerWords {
  std::vector<std::string> message;  // of its error file
  std::vector<std::string> output;   // without what the message says already
};

// At most 15 lines together, printable, each of at most 240 bytes.
[[nodiscard]] WorkerWords words_of(const rendezvous::Failure& failure);

}  // namespace ddp::launcher
