#include "launcher/core/dry_run.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/core/failure_text.h"
#include "launcher/core/worker_plan.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {
namespace {

using rendezvous::Placement;

constexpr std::size_t kSourceColumn = 44;

// As a shell would have to be given it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "_-+=./,:@%^";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return printable(text + "'");
}

std::string command_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(quoted(word));
  return text;
}

std::string entry(const std::string& name, const std::string& value, const std::string& source) {
  std::string line = "  " + name + "=" + (value.rfind('<', 0) == 0 ? value : quoted(value));
  line.resize(std::max(line.size() + 2, kSourceColumn), ' ');
  return line + source + "\n";
}

std::string span_of(std::int32_t first, std::int32_t count) {
  return count == 1 ? "rank " + std::to_string(first)
                    : "ranks " + std::to_string(first) + " to " + std::to_string(first + count - 1);
}

class Description {
 public:
  Description(const LaunchConfig& config, const OptionSources& sources, const Environment& base)
      : config_(config), sources_(sources), base_(base) {
    placement_.group_rank = rendezvous::GroupRank{config.node_rank};
    placement_.group_world_size = config.nodes.max;
    placement_.first_rank = rendezvous::Rank{config.node_rank * config.workers};
    placement_.role_first_rank = placement_.first_rank;
    placement_.world_size = config.nodes.max * config.workers;
    placement_.role_world_size = placement_.world_size;
    placement_.max_restarts = config.max_restarts;
    placement_.master =
        rendezvous::Endpoint{config.master_addr, config.master_port.value_or(rendezvous::Port{})};
    plan_ = plan_workers(config, {}, placement_, base);
    fill_sources();
  }

  std::string text() const {
    std::string text = heading();
    text += "\nIn the environment of " +
            std::string(config_.workers == 1 ? "the worker:\n" : "each worker:\n");
    for (const auto& [name, value] : plan_.environment) text += shared_entry(name, value);
    text += entry(kErrorFileVariable, "<a file of its own>", "ddplaunch, for the verdict");
    text += entry(kSharedMemoryVariable, "<a descriptor>", "ddplaunch, tells of deaths");
    if (!config_.verbose) {
      text += "  and " + std::to_string(inherited()) +
              " variables of ddplaunch's own environment (-v shows them)\n";
    }
    for (const WorkerPlan& worker : plan_.workers) text += worker_text(worker);
    return text;
  }

 private:
  std::string heading() const {
    const std::int32_t workers = config_.workers;
    std::string text = "ddplaunch would start " + std::to_string(workers) +
                       (workers == 1 ? " worker" : " workers") +
                       " on this node: " + span_of(placement_.first_rank.value, workers) + " of " +
                       std::to_string(placement_.world_size);
    if (config_.nodes.max > 1) {
      text += ", node " + std::to_string(config_.node_rank) + " of " +
              std::to_string(config_.nodes.max) + ", if the others have as many";
    }
    return text + ". Nothing was started.\n";
  }

  // "--nnodes=2", "PET_NNODES", "default of --nnodes"
  std::string option(const std::string& name) const {
    const std::string given = sources_.of(name);
    return given.empty() ? "default of --" + name : given;
  }

  std::string first_given(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (std::string given = sources_.of(name); !given.empty()) return given;
    }
    return std::string("default of --") + *(names.end() - 1);
  }

  void fill_sources() {
    const std::string world = option("nproc-per-node") + ", " + option("nnodes");
    const bool fresh = !config_.master_port;
    source_ = {
        {"GROUP_RANK", option("node-rank")},
        {"GROUP_WORLD_SIZE", option("nnodes")},
        {"LOCAL_WORLD_SIZE", option("nproc-per-node")},
        {"WORLD_SIZE", world},
        {"ROLE_NAME", option("role")},
        {"ROLE_WORLD_SIZE", world},
        {"MASTER_ADDR", fresh ? first_given({"local-addr", "master-addr"})
                              : first_given({"rdzv-endpoint", "master-addr"})},
        {"MASTER_PORT", fresh ? first_given({"port-range", "master-port"})
                        : config_.port_range
                            ? first_given({"rdzv-endpoint", "master-port", "port-range"})
                            : first_given({"rdzv-endpoint", "master-port"})},
        {"TORCHELASTIC_RESTART_COUNT", "ddplaunch, grows with each restart"},
        {"TORCHELASTIC_MAX_RESTARTS", option("max-restarts")},
        {"TORCHELASTIC_RUN_ID", option("rdzv-id")},
        {"TORCHELASTIC_USE_AGENT_STORE", "ddplaunch, always"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", option("signals-to-handle")},
        {"DDP_NODE_ID", "ddplaunch, always"},
        {"DDP_ROUND", "ddplaunch, always"},
    };
    shown_ = {{"DDP_NODE_ID", "<a random number>"}, {"DDP_ROUND", "<number and nonce>"}};
    if (fresh) shown_["MASTER_PORT"] = "<a fresh port>";
    if (fresh && config_.port_range) {
      shown_["MASTER_PORT"] = "<from " + std::to_string(config_.port_range->low.value) + " to " +
                              std::to_string(config_.port_range->high.value) + ">";
    }
    if (sources_.of("rdzv-id").empty() && config_.run_id != "none") {
      shown_["TORCHELASTIC_RUN_ID"] = "<random>";
    }
  }

  bool is_inherited(const std::string& name, const std::string& value) const {
    const auto found = base_.find(name);
    return source_.count(name) == 0 && found != base_.end() && found->second == value;
  }

  // Those that a launcher would set if they weren't there are always shown.
  static bool is_default_of_ours(const std::string& name) {
    return name == "OMP_NUM_THREADS" || name == "TORCH_NCCL_ASYNC_ERROR_HANDLING";
  }

  std::size_t inherited() const {
    return static_cast<std::size_t>(std::count_if(
        plan_.environment.begin(), plan_.environment.end(), [this](const auto& variable) {
          return is_inherited(variable.first, variable.second) &&
                 !is_default_of_ours(variable.first);
        }));
  }

  std::string shared_entry(const std::string& name, const std::string& value) const {
    if (is_inherited(name, value)) {
      const bool shown = config_.verbose || is_default_of_ours(name);
      return shown ? entry(name, value, "the environment") : "";
    }
    const auto known = source_.find(name);
    const auto placeholder = shown_.find(name);
    return entry(
        name, placeholder == shown_.end() ? value : placeholder->second,
        known == source_.end() ? "ddplaunch, unless the environment has it" : known->second);
  }

  std::string worker_text(const WorkerPlan& worker) const {
    std::string text = "\nRank " + std::to_string(worker.rank.value) + " (local rank " +
                       std::to_string(worker.local_rank.value) + "):\n";
    text += "  command: " + command_line(worker.arguments) + "\n";
    for (const auto& [name, value] : worker.environment) {
      text += entry(name, value,
                    name == "LOCAL_RANK" ? "its place on this node" : "its place in the job");
    }
    return text;
  }

  const LaunchConfig& config_;
  const OptionSources& sources_;
  const Environment& base_;
  Placement placement_;
  RoundPlan plan_;
  std::map<std::string, std::string> source_;
  std::map<std::string, std::string> shown_;  // instead of a value that isn't known yet
};

}  // namespace

std::string describe_plan(const LaunchConfig& config, const OptionSources& sources,
                          const Environment& base) {
  return Description(config, sources, base).text();
}

}  // namespace ddp::launcher
