#include "launcher/core/worker_plan.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "launcher/core/signal_names.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {
namespace {

using rendezvous::LocalRank;
using rendezvous::Placement;

bool begins_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool continues_name(char c) {
  return begins_name(c) || (c >= '0' && c <= '9');
}

std::string_view name_at(std::string_view text, std::size_t at) {
  if (at >= text.size() || !begins_name(text[at])) {
    return {};
  }
  std::size_t end = at;
  while (end < text.size() && continues_name(text[end])) {
    ++end;
  }
  return text.substr(at, end - at);
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value));
  return digits.data();
}

std::string value_or(const Environment& environment, const std::string& name,
                     const std::string& fallback) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? fallback : found->second;
}

std::vector<std::string> plan_arguments(const LaunchConfig& config, LocalRank local_rank,
                                        const Environment& base) {
  std::vector<std::string> arguments;
  arguments.reserve(config.arguments.size() + 4);
  if (config.kind == ProgramKind::executable) {
    arguments.push_back(config.program);
  } else {
    arguments.push_back(python_of(base));
    arguments.emplace_back("-u");
    if (config.kind == ProgramKind::python_module) {
      arguments.emplace_back("-m");
    }
    arguments.push_back(substitute_macros(config.program, local_rank));
  }
  if (!config.local_rank_option.empty()) {
    arguments.push_back(config.local_rank_option + "=" + std::to_string(local_rank.value));
  }
  for (const std::string& argument : config.arguments) {
    arguments.push_back(substitute_macros(argument, local_rank));
  }
  return arguments;
}

std::string signals_to_handle(const LaunchConfig& config) {
  std::string names;
  for (const std::int32_t signal : config.signals_to_handle) {
    names += (names.empty() ? "" : ",") + signal_name(signal);
  }
  return names.empty() ? "SIGTERM,SIGINT,SIGHUP,SIGQUIT" : names;
}

// What all workers of the node share.
Environment node_environment(const LaunchConfig& config, const rendezvous::NodeId& node,
                             const Placement& placement, const Environment& base) {
  Environment result = base;
  // Inherited from an outer launcher these would name its files and descriptors.
  result.erase(kErrorFileVariable);
  result.erase(kSharedMemoryVariable);
  // Each worker has its own of these.
  for (const char* name : {"LOCAL_RANK", "RANK", "ROLE_RANK"}) {
    result.erase(name);
  }
  result["GROUP_RANK"] = std::to_string(placement.group_rank.value);
  result["GROUP_WORLD_SIZE"] = std::to_string(placement.group_world_size);
  result["LOCAL_WORLD_SIZE"] = std::to_string(config.workers);
  result["WORLD_SIZE"] = std::to_string(placement.world_size);
  result["ROLE_NAME"] = config.role;
  result["ROLE_WORLD_SIZE"] = std::to_string(placement.role_world_size);
  result["MASTER_ADDR"] = placement.master->host;
  result["MASTER_PORT"] = std::to_string(placement.master->port.value);
  result["TORCHELASTIC_RESTART_COUNT"] = std::to_string(placement.restart_count);
  result["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(placement.max_restarts);
  result["TORCHELASTIC_RUN_ID"] = config.run_id;
  result["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  result["TORCHELASTIC_SIGNALS_TO_HANDLE"] = signals_to_handle(config);
  result.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (config.workers > 1) {
    result.try_emplace("OMP_NUM_THREADS", "1");
  }
  result["DDP_NODE_ID"] = node.value;
  result["DDP_ROUND"] =
      std::to_string(placement.round.number) + ":" + hexadecimal(placement.round.nonce);
  return result;
}

}  // namespace

// Python's string.Template.safe_substitute with the one name that torchrun knows.
std::string python_of(const Environment& environment) {
  return value_or(environment, "PYTHON_EXEC", "python3");
}

std::string substitute_macros(std::string_view text, LocalRank local_rank) {
  static constexpr std::string_view kName = "local_rank";
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      result += text[i++];
      continue;
    }
    const bool braced = i + 1 < text.size() && text[i + 1] == '{';
    const std::string_view name = name_at(text, i + (braced ? 2 : 1));
    const std::size_t end = i + (braced ? 3 : 1) + name.size();
    if (i + 1 < text.size() && text[i + 1] == '$') {
      result += '$';
      i += 2;
    } else if (name == kName && (!braced || (end <= text.size() && text[end - 1] == '}'))) {
      result += std::to_string(local_rank.value);
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

std::string attempt_folder(const Placement& placement) {
  const auto restarts = static_cast<std::uint64_t>(std::max(placement.restart_count, 0));
  const std::string attempt = "attempt_" + std::to_string(restarts);
  const std::uint64_t number = placement.round.number;
  return number <= restarts + 1 ? attempt : attempt + "." + std::to_string(number - restarts - 1);
}

std::string error_file_path(const std::string& run_folder, const Placement& placement,
                            LocalRank local_rank) {
  return run_folder + "/" + attempt_folder(placement) + "/" + std::to_string(local_rank.value) +
         "/error.json";
}

RoundPlan plan_workers(const LaunchConfig& config, const rendezvous::NodeId& node,
                       const Placement& placement, const Environment& base) {
  DDP_ASSERT(placement.master.has_value());
  RoundPlan round{node_environment(config, node, placement, base), {}};
  round.workers.reserve(static_cast<std::size_t>(config.workers));
  for (std::int32_t i = 0; i < config.workers; ++i) {
    WorkerPlan plan;
    plan.local_rank = LocalRank{i};
    plan.rank = rendezvous::Rank{placement.first_rank.value + i};
    plan.arguments = plan_arguments(config, plan.local_rank, base);
    plan.environment["LOCAL_RANK"] = std::to_string(i);
    plan.environment["RANK"] = std::to_string(plan.rank.value);
    plan.environment["ROLE_RANK"] = std::to_string(placement.role_first_rank.value + i);
    round.workers.push_back(std::move(plan));
  }
  return round;
}

}  // namespace ddp::launcher
