// From options as text to a validated LaunchConfig: what torchrun's options mean, and which of them
// fit together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/core/launch_config.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {

// What the command line needs to know of this machine. The functions look, and change nothing.
struct HostFacts {
  std::int32_t cpus = 1;
  std::function<std::int32_t()> count_gpus;  // asked only if the number matters
  std::function<bool(const std::string& path)> is_file;
  std::function<bool(const std::string& path)> is_executable_file;
  std::string random_run_id;  // used where the user gave none
};

// Each option as it was given: by PET_… in the environment, overridden by the command line.
struct GivenOptions {
  std::string nnodes = "1:1";
  std::string nproc_per_node = "1";
  std::optional<std::string> node_rank;
  std::optional<std::string> master_addr;
  std::optional<std::string> master_port;
  std::string rdzv_backend = "static";
  std::string rdzv_endpoint;
  std::optional<std::string> rdzv_id;
  std::string rdzv_conf;
  std::string local_addr;
  std::string max_restarts = "0";
  std::optional<std::string> shutdown_timeout;
  std::string on_failure = "restart";
  std::string restart_delay = "5";
  std::string signals_to_handle;
  std::string isolate = "none";
  std::string legacy_store = "2.0";
  std::string report_file;
  std::string events_file;
  std::string monitor_interval = "0.1";
  std::string start_method = "spawn";
  std::string role = "default";
  bool standalone = false;
  bool module = false;
  bool no_python = false;
  bool verbose = false;
  std::string program;
  std::vector<std::string> arguments;
};

[[nodiscard]] rendezvous::Result<LaunchConfig> make_config(const GivenOptions& given,
                                                           const Environment& environment,
                                                           const HostFacts& host);

}  // namespace ddp::launcher
