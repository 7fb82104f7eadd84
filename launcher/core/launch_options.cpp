#include "launcher/core/launch_options.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "launcher/core/option_values.h"
#include "launcher/core/signal_names.h"

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::kMaxNodes;
using rendezvous::kMaxWorkers;
using rendezvous::Port;
using rendezvous::Result;

constexpr std::int64_t kMaxSeconds = 1'000'000'000;
constexpr std::uint16_t kDefaultMasterPort = 29500;  // torchrun's

// One step of the validation each; the first error ends it.
class ConfigMaker {
 public:
  ConfigMaker(const GivenOptions& given, const Environment& environment, const HostFacts& host)
      : given_(given), environment_(environment), host_(host) {}

  Result<LaunchConfig> make() {
    using Step = Result<void> (ConfigMaker::*)();
    for (const Step step :
         {&ConfigMaker::set_program, &ConfigMaker::set_nodes, &ConfigMaker::set_workers,
          &ConfigMaker::set_limits, &ConfigMaker::set_failures, &ConfigMaker::set_rendezvous,
          &ConfigMaker::set_rendezvous_conf, &ConfigMaker::check_without_effect}) {
      const Result<void> done = (this->*step)();
      if (!done) {
        return done.error();
      }
    }
    config_.role = given_.role;
    config_.local_addr = given_.local_addr;
    config_.verbose = given_.verbose;
    config_.report_file = given_.report_file;
    config_.events_file = given_.events_file;
    return std::move(config_);
  }

 private:
  Result<void> set_program() {
    config_.program = given_.program;
    config_.arguments = given_.arguments;
    if (given_.module && given_.no_python) {
      return Error{"--module and --no-python exclude each other: a module needs Python"};
    }
    if (given_.program.empty()) {
      return Error{"the program's name is empty"};
    }
    if (given_.module) {
      config_.kind = ProgramKind::python_module;
    } else if (given_.no_python) {
      config_.kind = ProgramKind::executable;
    } else {
      guess_program_kind();
    }
    return {};
  }

  void guess_program_kind() {
    const std::string& name = given_.program;
    const auto ends_with = [&](std::string_view end) {
      return name.size() > end.size() &&
             name.compare(name.size() - end.size(), end.size(), end) == 0;
    };
    config_.kind = ProgramKind::executable;
    if (ends_with(".py") || ends_with(".pyc") || ends_with(".pyz")) {
      // Python would say so too, but with a code that asks for another try. PATH is not searched.
      const bool has_macro = name.find('$') != std::string::npos;  // each rank's own
      const bool missing = !has_macro && !host_.is_file(name);
      if (!missing) config_.kind = ProgramKind::python_script;
      if (missing && name.find('/') == std::string::npos) config_.program = "./" + name;
    } else if (host_.is_executable_file(name)) {
      if (name.find('/') == std::string::npos) {
        config_.program = "./" + name;
      }
    } else if (host_.is_file(name)) {
      config_.kind = ProgramKind::python_script;
    }
  }

  Result<void> set_nodes() {
    const std::string& text = given_.nnodes;
    const std::size_t colon = text.find(':');
    const Result<std::int32_t> low = number("--nnodes", text.substr(0, colon), {1, kMaxNodes});
    if (!low) {
      return Error{"--nnodes takes N or MIN:MAX with 1 <= MIN <= MAX, not \"" + text + "\""};
    }
    config_.nodes = {low.value(), low.value()};
    if (colon != std::string::npos) {
      const Result<std::int32_t> high =
          number("--nnodes", text.substr(colon + 1), {low.value(), kMaxNodes});
      if (!high) {
        return Error{"--nnodes takes N or MIN:MAX with 1 <= MIN <= MAX, not \"" + text + "\""};
      }
      config_.nodes.max = high.value();
    }
    if (config_.nodes.min != config_.nodes.max) {
      return Error{"--nnodes " + text +
                   ": a number of nodes that may change (MIN < MAX) is not in this version"};
    }
    return {};
  }

  Result<void> set_workers() {
    const std::string& text = given_.nproc_per_node;
    if (text == "cpu") {
      config_.workers = std::max(host_.cpus, 1);
      return {};
    }
    if (text == "gpu" || text == "auto") {
      const std::int32_t gpus = host_.count_gpus();
      if (gpus <= 0 && text == "gpu") {
        return Error{"--nproc-per-node gpu: no GPU is visible on this host"};
      }
      config_.workers = gpus > 0 ? gpus : std::max(host_.cpus, 1);
      return {};
    }
    const Result<std::int32_t> workers = number("--nproc-per-node", text, {1, kMaxWorkers});
    if (!workers) {
      return Error{"--nproc-per-node takes a whole number from 1 to " +
                   std::to_string(kMaxWorkers) + ", cpu, gpu or auto, not \"" + text + "\""};
    }
    config_.workers = workers.value();
    return {};
  }

  Result<void> set_limits() {
    const Result<std::int32_t> restarts = number("--max-restarts", given_.max_restarts,
                                                 {0, std::numeric_limits<std::int32_t>::max()});
    if (!restarts) {
      return restarts.error();
    }
    config_.max_restarts = restarts.value();
    const auto inherited = environment_.find("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    std::string option = "--shutdown-timeout";
    std::optional<std::string> text = given_.shutdown_timeout;
    if (!text && inherited != environment_.end()) {
      option = inherited->first;
      text = inherited->second;
    }
    if (text) {
      const Result<std::int32_t> seconds = number(option, *text, {0, kMaxSeconds});
      if (!seconds) {
        return seconds.error();
      }
      config_.shutdown_timeout = std::chrono::seconds(seconds.value());
    }
    return {};
  }

  Result<void> set_failures() {
    const Result<bool> notify = choice("--on-failure", given_.on_failure, {"restart", "notify"});
    if (!notify) {
      return notify.error();
    }
    config_.on_failure = notify.value() ? OnFailure::notify : OnFailure::restart;
    const Result<bool> isolate = choice("--isolate", given_.isolate, {"none", "pid"});
    if (!isolate) {
      return isolate.error();
    }
    config_.isolate_pids = isolate.value();
    const Result<bool> of_2_1 = choice("--legacy-store", given_.legacy_store, {"2.0", "2.1"});
    if (!of_2_1) {
      return of_2_1.error();
    }
    config_.legacy_store =
        of_2_1.value() ? rendezvous::StoreDialect::b : rendezvous::StoreDialect::a;
    const Result<std::int32_t> delay =
        number("--restart-delay", given_.restart_delay, {0, kMaxSeconds});
    if (!delay) {
      return delay.error();
    }
    config_.restart_delay = std::chrono::seconds(delay.value());
    Result<std::vector<std::int32_t>> signals =
        parse_signals("--signals-to-handle", given_.signals_to_handle);
    if (!signals) {
      return signals.error();
    }
    config_.signals_to_handle = std::move(signals).value();
    return {};
  }

  // True for the second of the two.
  static Result<bool> choice(const std::string& option, const std::string& text,
                             const std::array<std::string, 2>& known) {
    if (text == known[0] || text == known[1]) {
      return text == known[1];
    }
    return Error{option + " takes " + known[0] + " or " + known[1] + ", not \"" + text + "\""};
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
      config_.master_port = Port{kDefaultMasterPort};
    } else if (!given_.rdzv_id || given_.rdzv_id->empty()) {
      config_.run_id = host_.random_run_id;
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
      config_.run_id = host_.random_run_id;
    }
    return {};
  }

  void use_fresh_port() {
    config_.master_port.reset();
    if (!given_.local_addr.empty()) {
      config_.master_addr = given_.local_addr;
    }
    if (!given_.rdzv_id || given_.rdzv_id->empty()) {
      config_.run_id = host_.random_run_id;
    }
  }

  Result<void> set_rendezvous_conf() {
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

  // Accepted for torchrun's sake; what torchrun would refuse is refused.
  Result<void> check_without_effect() {
    const std::string interval = strip(given_.monitor_interval);
    char* end = nullptr;
    const double seconds = std::strtod(interval.c_str(), &end);
    if (interval.empty() || *end != '\0' || !(seconds > 0)) {
      return Error{"--monitor-interval takes a number of seconds above 0, not \"" +
                   given_.monitor_interval + "\""};
    }
    if (given_.start_method != "spawn" && given_.start_method != "fork" &&
        given_.start_method != "forkserver") {
      return Error{"--start-method takes spawn, fork or forkserver, not \"" + given_.start_method +
                   "\""};
    }
    return {};
  }

  const GivenOptions& given_;
  const Environment& environment_;
  const HostFacts& host_;
  LaunchConfig config_;
};

}  // namespace

Result<LaunchConfig> make_config(const GivenOptions& given, const Environment& environment,
                                 const HostFacts& host) {
  return ConfigMaker(given, environment, host).make();
}

}  // namespace ddp::launcher
