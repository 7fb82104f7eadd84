#include "tests/sim/describe.h"

#include "rendezvous/core/message_json.h"

namespace ddp::sim {

// The digits that differ come first.
std::string name(const rendezvous::NodeId& node) {
  return "node " + node.value.substr(0, 4);
}

std::string describe(const rendezvous::Message& message) {
  return rendezvous::write_message(message);
}

}  // namespace ddp::sim
