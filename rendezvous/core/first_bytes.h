// Which protocol a connection speaks, told from its first bytes (PROTOCOL.md, "One port, several
// protocols").
#pragma once

#include <cstdint>
#include <string_view>

namespace ddp::rendezvous {

inline constexpr std::string_view kAgentMagic = "ddpagent";

enum class Protocol : std::uint8_t {
  undecided,        // too few bytes yet; never waits for more than it needs
  tcpstore_c,       // PyTorch 2.2 and later
  tcpstore_legacy,  // PyTorch up to 2.1: nothing tells dialect A from B
  agent,
  http,
  tls,
  unknown,  // none that we know: close
};

// `bytes`: all that has arrived so far. Never undecided on eight bytes or more.
[[nodiscard]] Protocol recognise_protocol(std::string_view bytes);

}  // namespace ddp::rendezvous
