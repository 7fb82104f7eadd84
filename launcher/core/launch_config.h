// The validated configuration of one agent: everything below reads it, nothing edits it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/membership.h"
#include "rendezvous/core/port_range.h"
#include "rendezvous/core/tcpstore_wire.h"

namespace ddp::launcher {

using rendezvous::Duration;
using rendezvous::Endpoint;
using rendezvous::NodeLimits;

// The environment as a value: name -> value, ordered.
using Environment = std::map<std::string, std::string>;

enum class ProgramKind : std::uint8_t {
  python_script,  // PYTHON_EXEC or python3, "-u", script, args
  python_module,  // … "-u", "-m", module, args
  executable,     // the program itself, found by PATH
};

// What the death of a worker means for the others.
enum class OnFailure : std::uint8_t {
  restart,  // all are stopped, then start again or not
  notify,   // they are told of it and run on
};

struct LaunchConfig {
  ProgramKind kind = ProgramKind::executable;
  std::string program;
  std::vector<std::string> arguments;  // byte for byte as given
  std::string local_rank_option;       // put before them, with the local rank; empty: nothing is

  std::int32_t workers = 1;  // --nproc-per-node, resolved to a number
  NodeLimits nodes;
  std::int32_t node_rank = 0;
  bool standalone = false;
  std::string run_id = "none";
  std::string role = "default";
  std::int32_t max_restarts = 0;

  std::string master_addr = "127.0.0.1";
  std::optional<rendezvous::Port> master_port;      // absent: a fresh port, one node only
  std::optional<rendezvous::PortRange> port_range;  // nothing of ours listens elsewhere
  std::string local_addr;                           // empty: found out

  Duration shutdown_timeout = std::chrono::seconds(30);
  Duration join_timeout = std::chrono::seconds(600);
  OnFailure on_failure = OnFailure::restart;
  Duration restart_delay = std::chrono::seconds(5);  // the longest pause before a restart; 0: none
  std::vector<std::int32_t> signals_to_handle;       // by number, --signals-to-handle

  bool isolate_pids = false;  // workers in a PID namespace of their own
  rendezvous::StoreDialect legacy_store = rendezvous::StoreDialect::a;
  std::string report_file;  // the verdict as JSON; empty: none
  std::string events_file;  // what happens, a line of JSON each; empty: none
  bool verbose = false;
};

}  // namespace ddp::launcher
