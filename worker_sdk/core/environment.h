// What the environment says about this process's place in the job, and what the user has set.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/membership.h"

namespace ddp::sdk {

using Environment = std::map<std::string, std::string>;

struct World {
  int rank = 0;
  int world_size = 1;
  std::optional<int> local_rank;
  std::optional<int> local_world_size;
  std::string master_address;
  std::uint16_t master_port = 0;
};

enum class DebugLevel : std::uint8_t { off, info, detail };

struct Settings {
  std::string backend = "auto";
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  DebugLevel debug = DebugLevel::off;
  std::vector<std::string> plugin_path;
  std::string socket_address;
  std::string node_id;                       // of our agent; empty: another launcher
  std::optional<int> control_page;           // descriptor
  std::optional<rendezvous::RoundId> round;  // of our agent
  // Which restart this is, where the store outlives one (torchrun's does, our agent's does not);
  // empty: the first start, or not known.
  std::string attempt;
};

// Empty: nobody has started this process as one of several. Throws InvalidUse (an incomplete set, a
// value that makes no sense) or Unavailable (a launcher that this version does not know).
[[nodiscard]] std::optional<World> read_world(const Environment& environment);

// Throws InvalidUse.
[[nodiscard]] Settings read_settings(const Environment& environment);

// One of the names that DDP_BACKEND and InitOptions take? Throws InvalidUse if not.
void check_backend_name(const std::string& name, const std::string& where);

}  // namespace ddp::sdk
