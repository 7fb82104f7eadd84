// What the text of an option's value means: numbers, ports, endpoints, names of signals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/port_range.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {

// Without the blanks around it.
[[nodiscard]] std::string strip(std::string_view text);

inline constexpr std::int64_t kMaxSeconds = 1'000'000'000;

struct Range {
  std::int64_t low;
  std::int64_t high;
};

// As Python's int(): blanks around, a sign, decimal digits ("010" is ten). The error names
// `option`.
[[nodiscard]] rendezvous::Result<std::int32_t> number(const std::string& option,
                                                      const std::string& text, Range range);
[[nodiscard]] rendezvous::Result<rendezvous::Port> port(const std::string& option,
                                                        const std::string& text);

// "A-B" with 1 <= A <= B.
[[nodiscard]] rendezvous::Result<rendezvous::PortRange> parse_port_range(const std::string& option,
                                                                         const std::string& text);

[[nodiscard]] std::string without_brackets(const std::string& host);

struct GivenEndpoint {
  std::string host;
  std::optional<rendezvous::Port> port;
};

// "host", "host:port", "[::1]", "[::1]:port"; `text` isn't blank.
[[nodiscard]] rendezvous::Result<GivenEndpoint> parse_endpoint(const std::string& text);

// "SIGTERM,SIGUSR1" to numbers; only signals that a process can handle.
[[nodiscard]] rendezvous::Result<std::vector<std::int32_t>> parse_signals(const std::string& option,
                                                                          const std::string& text);

}  // namespace ddp::launcher
