// Chooses the literal address on which a rank's Gloo sockets listen.
#pragma once

#include <string>

namespace ddp::backends {

// `wanted` if it is not empty; else the address of the interface named by GLOO_SOCKET_IFNAME; else
// loopback if all ranks are on this host; else what the host's name resolves to, if that is an
// address of this host and no loopback one; else the first address that is up and no loopback one.
// IPv4 before IPv6. Always a literal: Debian's Gloo reads uninitialised memory when a name does not
// resolve. Throws Failure.
[[nodiscard]] std::string choose_local_address(const std::string& wanted, bool one_host);

}  // namespace ddp::backends
