#include "launcher/core/rendezvous_options.h"

#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "launcher/core/option_values.h"

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::Port;
using rendezvous::PortRange;
using rendezvous::Result;

constexpr std::uint16_t kDefaultMasterPort = 29500;  // torchrun's

class RendezvousMaker {
 public:
  RendezvousMaker(const GivenOptions& given, const std::string& random_run_id, LaunchConfig& config)
      : given_(given), random_run_id_(random_run_id), config_(config) {}

  Result<void> make() {
    using Step = Result<void> (RendezvousMaker::*)();
    for (const Step step : {&RendezvousMaker::set_port_range, &RendezvousMaker::set_rendezvous,
                            &RendezvousMaker::check_range, &RendezvousMaker::set_conf}) {
      const Result<void> done = (this->*step)();
      if (!done) return done.error();
    }
    return {};
  }

 private:
  Result<void> set_port_range() {
    if (!given_.port_range) return {};
    const Result<PortRange> range = parse_port_range("--port-range", *given_.port_range);
    if (!range) return range.error();
    config_.port_range = range.value();
    return {};
  }

  Result<void> check_range() {
    const auto& range = config_.port_range;
    if (!range || !config_.master_port || range->contains(*config_.master_port)) return {};
    return Error{"port " + std::to_string(config_.master_port->value) +
                 " is outside of --port-range " + *given_.port_range};
  }

  Result<void> set_rendezvous() {
    config_.standalone = given_.standalone;
    config_.run_id = given_.rdzv_id.value_or("none");
    const std::int32_t nodes = config_.nodes.max;
    if (given_.standalone) {
      if (nodes > 1) {
        return Error{"--standalone is for one node, but --nnodes is " + given_.nnodes +
                     "; for several give --master-addr and --node-rank instead"};
      }
      use_fresh_port();
      return {};
    }
    const std::string& backend = given_.rdzv_backend;
    if (backend != "static" && backend != "c10d") {
      return Error{"--rdzv-backend " + backend +
                   " is not in this version; static is, and for one node c10d"};
    }
    if (backend == "c10d" && nodes > 1) {
      return Error{
          "--rdzv-backend c10d with several nodes is not in this version; use the default "
          "(static) with --master-addr, --master-port and --node-rank"};
    }
    std::optional<GivenEndpoint> endpoint;
    if (!strip(given_.rdzv_endpoint).empty()) {
      const Result<GivenEndpoint> parsed = parse_endpoint(given_.rdzv_endpoint);
      if (!parsed) {
        return parsed.error();
      }
      endpoint = parsed.value();
    }
    if (backend == "c10d") {
      // Alone, there is nobody to meet at the endpoint.
      use_fresh_port();
      return {};
    }
    return set_static(endpoint);
  }

  Result<void> set_static(const std::optional<GivenEndpoint>& endpoint) {
    const Result<std::int32_t> rank = number(
        "--node-rank", given_.node_rank.value_or("0"),
        {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()});
    if (!rank) {
      return rank.error();
    }
    config_.node_rank = rank.value();
    if (config_.node_rank < 0 || config_.node_rank >= config_.nodes.max) {
      return Error{"--node-rank " + std::to_string(config_.node_rank) +
                   " is out of range: with --nnodes " + std::to_string(config_.nodes.max) +
                   " it is from 0 to " + std::to_string(config_.nodes.max - 1)};
    }
    config_.join_timeout = std::chrono::seconds(900);  // torchrun's for static
    if (endpoint) {
      if (!endpoint->port) {
        return Error{"--rdzv-endpoint needs a port with the static backend: host:port"};
      }
      config_.master_addr = endpoint->host;
      config_.master_port = endpoint->port;
      return check_master_port();
    }
    if (given_.master_addr && !given_.master_addr->empty()) {
      config_.master_addr = without_brackets(*given_.master_addr);
    }
    if (given_.master_port) {
      const Result<Port> given = port("--master-port", *given_.master_port);
      if (!given) {
        return given.error();
      }
      config_.master_port = given.value();
    } else if (config_.nodes.max > 1) {
      config_.master_port = config_.port_range ? config_.port_range->low : Port{kDefaultMasterPort};
    } else if (!given_.rdzv_id || given_.rdzv_id->empty()) {
      config_.run_id = random_run_id_;
    }
    return check_master_port();
  }

  // Port 0 asks for a fresh one, which other nodes could not know.
  Result<void> check_master_port() {
    if (config_.master_port && config_.master_port->value == 0) {
      if (config_.nodes.max > 1) {
        return Error{"port 0 (a fresh one) cannot work with several nodes: they could not know it"};
      }
      config_.master_port.reset();
    }
    if (config_.run_id.empty()) {
      config_.run_id = random_run_id_;
    }
    return {};
  }

  void use_fresh_port() {
    config_.master_port.reset();
    if (!given_.local_addr.empty()) {
      config_.master_addr = given_.local_addr;
    }
    if (!given_.rdzv_id || given_.rdzv_id->empty()) {
      config_.run_id = random_run_id_;
    }
  }

  Result<void> set_conf() {
    std::string_view rest = given_.rdzv_conf;
    while (!strip(rest).empty()) {
      const std::size_t comma = rest.find(',');
      const std::string pair = strip(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      const std::size_t equals = pair.find('=');
      const std::string key = strip(pair.substr(0, equals));
      const std::string value =
          equals == std::string::npos ? std::string() : strip(pair.substr(equals + 1));
      if (key.empty() || value.empty()) {
        return Error{"--rdzv-conf takes key=value,key=value, not \"" + given_.rdzv_conf + "\""};
      }
      if (key != "join_timeout" && key != "timeout") {
        return Error{"--rdzv-conf: \"" + key +
                     "\" is not in this version; known are join_timeout and timeout"};
      }
      const Result<std::int32_t> seconds = number("--rdzv-conf " + key, value, {1, kMaxSeconds});
      if (!seconds) {
        return seconds.error();
      }
      config_.join_timeout = std::chrono::seconds(seconds.value());
    }
    return {};
  }

  const GivenOptions& given_;
  const std::string& random_run_id_;
  LaunchConfig& config_;
};

}  // namespace

Result<void> set_rendezvous(const GivenOptions& given, const std::string& random_run_id,
                            LaunchConfig& config) {
  return RendezvousMaker(given, random_run_id, config).make();
}

}  // namespace ddp::launcher
