// Parses any command line: NUL between the tokens, those before a "%%" are NAME=VALUE of the
// environment. What comes out is a sound configuration or one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/core/command_line.h"
#include "launcher/core/dry_run.h"
#include "launcher/core/error_file.h"
#include "launcher/core/worker_plan.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {
namespace {

std::vector<std::string> split(std::string_view bytes) {
  std::vector<std::string> tokens;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    tokens.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return tokens;
}

Environment take_environment(std::vector<std::string>& tokens) {
  Environment environment;
  const auto mark = std::find(tokens.begin(), tokens.end(), "%%");
  if (mark == tokens.end()) return environment;
  for (auto token = tokens.begin(); token != mark; ++token) {
    const std::size_t equals = token->find('=');
    if (equals != std::string::npos)
      environment[token->substr(0, equals)] = token->substr(equals + 1);
  }
  tokens.erase(tokens.begin(), mark + 1);
  return environment;
}

HostFacts host() {
  HostFacts facts;
  facts.cpus = 4;
  facts.count_gpus = [] { return 2; };
  facts.is_file = [](const std::string& path) { return path.size() % 2 == 0; };
  facts.is_executable_file = [](const std::string& path) { return path.size() % 4 == 0; };
  facts.exists = [](const std::string& path) { return path.size() % 3 == 0; };
  facts.random_run_id = "random";
  return facts;
}

void check(const LaunchConfig& config, const std::vector<std::string>& tokens,
           const Environment& environment) {
  DDP_ASSERT(!config.program.empty());
  DDP_ASSERT(config.workers >= 1 && config.workers <= 100'000);
  DDP_ASSERT(config.nodes.min >= 1 && config.nodes.min == config.nodes.max);
  DDP_ASSERT(config.node_rank >= 0 && config.node_rank < config.nodes.max);
  DDP_ASSERT(config.nodes.max == 1 || (config.master_port && config.master_port->value != 0));
  DDP_ASSERT(!config.run_id.empty() && config.max_restarts >= 0);
  DDP_ASSERT(config.arguments.size() < tokens.size());
  DDP_ASSERT(std::equal(config.arguments.rbegin(), config.arguments.rend(), tokens.rbegin()));
  if (config.workers > 16) return;
  rendezvous::Placement placement;
  placement.master = Endpoint{config.master_addr, rendezvous::Port{1}};
  const auto plan = plan_workers(config, rendezvous::NodeId{"n"}, placement, environment);
  DDP_ASSERT(plan.workers.size() == static_cast<std::size_t>(config.workers));
  DDP_ASSERT(plan.workers.back().arguments.size() > config.arguments.size());
}

}  // namespace
}  // namespace ddp::launcher

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddp::launcher;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)parse_error_file(bytes);
  std::vector<std::string> tokens = split(bytes);
  const Environment environment = take_environment(tokens);
  const CommandLine line = parse_command_line(tokens, environment, host());
  if (const auto* error = std::get_if<UsageError>(&line)) {
    DDP_ASSERT(!error->message.empty() && error->message.find('\n') == std::string::npos);
  } else if (const auto* config = std::get_if<LaunchConfig>(&line)) {
    check(*config, tokens, environment);
  } else if (const auto* plan = std::get_if<ShowPlan>(&line)) {
    check(plan->config, tokens, environment);
    if (plan->config.workers > 16) return 0;
    DDP_ASSERT(!describe_plan(plan->config, plan->sources, environment).empty());
  } else {
    DDP_ASSERT(!std::get<ShowText>(line).text.empty());
  }
  return 0;
}
