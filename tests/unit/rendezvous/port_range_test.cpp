#include "rendezvous/core/port_range.h"

#include <catch2/catch.hpp>
#include <set>

using namespace ddp::rendezvous;

TEST_CASE("port range: each port once, from a drawn place") {
  const PortRange range{Port{65530}, Port{65535}};
  std::set<std::uint16_t> firsts;
  for (std::uint64_t draw = 0; draw < 12; ++draw) {
    std::set<std::uint16_t> taken;
    FreshPorts ports(range, draw);
    firsts.insert(FreshPorts(range, draw).take().value);
    while (ports.left()) {
      const Port port = ports.take();
      CHECK(range.contains(port));
      CHECK(taken.insert(port.value).second);
    }
    CHECK(taken.size() == range.size());
  }
  CHECK(firsts.size() == 6);
  CHECK_FALSE(range.contains(Port{65529}));
}

TEST_CASE("port range: all ports, and one") {
  CHECK(PortRange{Port{1}, Port{65535}}.size() == 65535);
  FreshPorts one(PortRange{Port{7}, Port{7}}, 99);
  CHECK(one.take() == Port{7});
  CHECK_FALSE(one.left());
}
