#include "launcher/core/launch_options.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "launcher/core/option_values.h"
#include "launcher/core/rendezvous_options.h"
#include "launcher/core/signal_names.h"

namespace ddp::launcher {
namespace {

using rendezvous::Error;
using rendezvous::kMaxNodes;
using rendezvous::kMaxWorkers;
using rendezvous::Result;

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
          &ConfigMaker::check_without_effect}) {
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
    if (given_.module && given_.no_python && !given_.run_path) {
      return Error{"--module and --no-python exclude each other: a module needs Python"};
    }
    if (given_.program.empty()) {
      return Error{"the program's name is empty"};
    }
    if (given_.run_path) {
      set_run_path();
    } else if (given_.module) {
      config_.kind = ProgramKind::python_module;
    } else if (given_.no_python) {
      config_.kind = ProgramKind::executable;
    } else {
      guess_program_kind();
    }
    return set_local_rank_option();
  }

  // What runpy.run_path takes: a file, a folder or an archive.
  void set_run_path() {
    const std::string& name = given_.program;
    const bool has_macro = name.find('$') != std::string::npos;  // each rank's own
    if (has_macro || host_.exists(name)) {
      config_.kind = ProgramKind::python_script;
    } else {
      missing_program();
    }
  }

  // Python would say so too, but with a code that asks for another try. PATH is not searched.
  void missing_program() {
    config_.kind = ProgramKind::executable;
    if (given_.program.find('/') == std::string::npos) config_.program = "./" + given_.program;
  }

  Result<void> set_local_rank_option() {
    if (!given_.pass_local_rank) return {};
    const std::string& name = *given_.pass_local_rank;
    if (name != "local-rank" && name != "local_rank") {
      return Error{"--pass-local-rank takes local-rank or local_rank, not \"" + name + "\""};
    }
    if (given_.use_env) {
      return Error{"--pass-local-rank and --use-env exclude each other"};
    }
    config_.local_rank_option = "--" + name;
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
      const bool has_macro = name.find('$') != std::string::npos;
      if (has_macro || host_.is_file(name)) {
        config_.kind = ProgramKind::python_script;
      } else {
        missing_program();
      }
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
    return launcher::set_rendezvous(given_, host_.random_run_id, config_);
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
