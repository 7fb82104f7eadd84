// Ports that may be listened on, and an order in which to try them.
#pragma once

#include <cstdint>

#include "rendezvous/core/membership.h"

namespace ddp::rendezvous {

// Both ends included; low >= 1.
struct PortRange {
  Port low;
  Port high;

  [[nodiscard]] bool contains(Port port) const {
    return low.value <= port.value && port.value <= high.value;
  }
  [[nodiscard]] std::uint32_t size() const {
    return static_cast<std::uint32_t>(high.value) - low.value + 1;
  }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// Every port of the range once, from a place that `draw` chooses: launchers that start together
// don't run after each other, and the port of the last round isn't the next one's.
class FreshPorts {
 public:
  FreshPorts(PortRange range, std::uint64_t draw)
      : range_(range), next_(static_cast<std::uint32_t>(draw % range.size())) {}

  [[nodiscard]] bool left() const { return taken_ < range_.size(); }
  [[nodiscard]] Port take() {
    const Port port{static_cast<std::uint16_t>(range_.low.value + next_)};
    next_ = (next_ + 1) % range_.size();
    ++taken_;
    return port;
  }

 private:
  PortRange range_;
  std::uint32_t next_;
  std::uint32_t taken_ = 0;
};

}  // namespace ddp::rendezvous
