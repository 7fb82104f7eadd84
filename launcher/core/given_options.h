// Each option as it was given, still as text: by PET_… in the environment, overridden by the
// command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddp::launcher {

// The defaults are torchrun's where it has the option. An absent value: the default depends on
// others.
struct GivenOptions {
  std::string nproc_per_node = "1";
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  std::string role = "default";
  std::optional<std::string> pass_local_rank;
  bool use_env = false;

  bool standalone = false;
  std::string nnodes = "1:1";
  std::optional<std::string> node_rank;
  std::optional<std::string> master_addr;
  std::optional<std::string> master_port;
  std::optional<std::string> port_range;
  std::string local_addr;
  std::string rdzv_endpoint;
  std::string rdzv_backend = "static";
  std::optional<std::string> rdzv_id;
  std::string rdzv_conf;

  std::string max_restarts = "0";
  std::optional<std::string> shutdown_timeout;
  std::string signals_to_handle;
  std::string on_failure = "restart";
  std::string restart_delay = "5";
  std::string isolate = "none";

  std::string report_file;
  std::string events_file;
  bool verbose = false;
  bool dry_run = false;

  std::string monitor_interval = "0.1";
  std::string start_method = "spawn";
  std::string legacy_store = "2.0";
  std::optional<std::string> print_completion;
  bool version = false;
  bool help = false;

  std::string program;
  std::vector<std::string> arguments;
};

}  // namespace ddp::launcher
