#include "launcher/core/option_values.h"

#include <algorithm>
#include <limits>

#include "launcher/core/signal_names.h"
#include "launcher/core/signal_roles.h"

namespace ddp::launcher {

using rendezvous::Error;
using rendezvous::Port;
using rendezvous::PortRange;
using rendezvous::Result;

std::string strip(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) {
    return {};
  }
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

namespace {

// As Python's int(): blanks around, a sign, decimal digits ("010" is ten).
std::optional<std::int64_t> parse_integer(const std::string& text) {
  const std::string stripped = strip(text);
  const bool negative = !stripped.empty() && stripped.front() == '-';
  const std::size_t begin = negative || (!stripped.empty() && stripped.front() == '+') ? 1 : 0;
  if (begin == stripped.size() || stripped.size() - begin > 18) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  for (std::size_t i = begin; i < stripped.size(); ++i) {
    if (stripped[i] < '0' || stripped[i] > '9') {
      return std::nullopt;
    }
    value = value * 10 + (stripped[i] - '0');
  }
  return negative ? -value : value;
}

}  // namespace

Result<std::int32_t> number(const std::string& option, const std::string& text, Range range) {
  const auto value = parse_integer(text);
  if (!value || *value < range.low || *value > range.high) {
    const std::string bounds =
        range.high == std::numeric_limits<std::int32_t>::max()
            ? "of at least " + std::to_string(range.low)
            : "from " + std::to_string(range.low) + " to " + std::to_string(range.high);
    return Error{option + " takes a whole number " + bounds + ", not \"" + text + "\""};
  }
  return static_cast<std::int32_t>(*value);
}

Result<Port> port(const std::string& option, const std::string& text) {
  const Result<std::int32_t> value = number(option, text, {0, 65535});
  if (!value) {
    return value.error();
  }
  return Port{static_cast<std::uint16_t>(value.value())};
}

Result<PortRange> parse_port_range(const std::string& option, const std::string& text) {
  const std::size_t dash = text.find('-', 1);
  if (dash != std::string::npos) {
    const Result<std::int32_t> low = number(option, text.substr(0, dash), {1, 65535});
    const Result<std::int32_t> high = number(option, text.substr(dash + 1), {1, 65535});
    if (low && high && low.value() <= high.value()) {
      return PortRange{Port{static_cast<std::uint16_t>(low.value())},
                       Port{static_cast<std::uint16_t>(high.value())}};
    }
  }
  return Error{option + " takes A-B with 1 <= A <= B <= 65535, not \"" + text + "\""};
}

std::string without_brackets(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

Result<GivenEndpoint> parse_endpoint(const std::string& text) {
  const std::string endpoint = strip(text);
  if (endpoint.front() == '[' && endpoint.back() == ']') {
    return GivenEndpoint{without_brackets(endpoint), std::nullopt};
  }
  const std::size_t colon = endpoint.rfind(':');
  if (endpoint.front() != '[' && endpoint.find(':') != colon) {
    return Error{"--rdzv-endpoint " + text +
                 " can be read in two ways; an IPv6 address goes in brackets: [" + endpoint +
                 "]:PORT"};
  }
  GivenEndpoint result{without_brackets(endpoint.substr(0, colon)), std::nullopt};
  const bool host_ok = std::all_of(result.host.begin(), result.host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '-';
  });
  if (result.host.empty() || !host_ok) {
    return Error{"--rdzv-endpoint takes host:port, not \"" + text + "\""};
  }
  if (colon != std::string::npos) {
    const Result<Port> given = port("the port of --rdzv-endpoint", endpoint.substr(colon + 1));
    if (!given) {
      return given.error();
    }
    result.port = given.value();
  }
  return result;
}

Result<std::vector<std::int32_t>> parse_signals(const std::string& option,
                                                const std::string& text) {
  std::vector<std::int32_t> signals;
  std::string_view rest = text;
  while (!strip(rest).empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string name = strip(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::optional<std::int32_t> signal = signal_number(name);
    if (!signal) {
      return Error{option + " takes names of signals (SIGTERM,SIGUSR1), not \"" + text + "\""};
    }
    const SignalRole role = role_of_signal(*signal);
    if (role == SignalRole::not_ours || role == SignalRole::resumes) {
      return Error{option + ": " + name + " can't be handled"};
    }
    signals.push_back(*signal);
  }
  return signals;
}

}  // namespace ddp::launcher
