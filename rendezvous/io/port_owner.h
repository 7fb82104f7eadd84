// Finds out which process holds a TCP port, for the message that says so.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>

namespace ddp::rendezvous {

// "pid 4711 (nc)"; nothing where it can't be seen (another user's process, no /proc). Looks at
// every process of the host, so only once something has gone wrong.
[[nodiscard]] std::optional<std::string> port_owner(const boost::asio::ip::tcp::endpoint& at);

}  // namespace ddp::rendezvous
