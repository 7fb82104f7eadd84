// Names of what is sent, for traces.
#pragma once

#include <string>

#include "rendezvous/core/message.h"

namespace ddp::sim {

[[nodiscard]] std::string name(const rendezvous::NodeId& node);
[[nodiscard]] std::string describe(const rendezvous::Message& message);

}  // namespace ddp::sim
