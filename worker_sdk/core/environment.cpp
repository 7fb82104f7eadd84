#include "worker_sdk/core/environment.h"

#include <charconv>
#include <initializer_list>
#include <string_view>

#include <ddp/error.hpp>

namespace ddp::sdk {
namespace {

// A variable that is set to nothing counts as not set.
std::optional<std::string> find(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

bool has(const Environment& environment, const std::string& name) {
  return find(environment, name).has_value();
}

template <typename Number>
std::optional<Number> parse(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int> find_number(const Environment& environment, const std::string& name, int least,
                               int most) {
  const auto text = find(environment, name);
  if (!text) return std::nullopt;
  const auto value = parse<int>(*text);
  if (!value || *value < least || *value > most) {
    throw InvalidUse("the variable " + name + " is \"" + *text + "\", but must be a number from " +
                     std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

struct Launcher {
  const char* name;
  const char* rank;
  std::initializer_list<const char*> sizes;  // the first that is set counts
};

// Alone in the eyes of such a launcher is alone; one of several is not to run as if it were.
void refuse_other_launchers(const Environment& environment) {
  static const Launcher launchers[] = {
      {"Open MPI", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}},
      {"PMI (MPICH and relatives)", "PMI_RANK", {"PMI_SIZE"}},
      {"Slurm", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
  };
  for (const Launcher& launcher : launchers) {
    if (!has(environment, launcher.rank)) continue;
    std::string size;
    for (const char* name : launcher.sizes) {
      if (size.empty()) size = find(environment, name).value_or("");
    }
    if (size == "1") continue;
    throw Unavailable(std::string("this process was started by ") + launcher.name + " (" +
                      launcher.rank +
                      " is set), whose variables this version does not read: "
                      "start it with ddplaunch or torchrun");
  }
}

constexpr int kMostRanks = 1 << 24;

}  // namespace

std::optional<World> read_world(const Environment& environment) {
  const bool placed = has(environment, "RANK") || has(environment, "WORLD_SIZE");
  if (!placed) refuse_other_launchers(environment);

  std::string missing;
  int present = 0;
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    if (has(environment, name)) {
      ++present;
    } else {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (present == 0) return std::nullopt;
  if (!missing.empty()) {
    throw InvalidUse("the environment describes a job only in part; missing: " + missing +
                     " (ddplaunch and torchrun set all four; unset the others to run alone)");
  }

  World world;
  world.world_size = *find_number(environment, "WORLD_SIZE", 1, kMostRanks);
  world.rank = *find_number(environment, "RANK", 0, world.world_size - 1);
  world.master_address = *find(environment, "MASTER_ADDR");
  world.master_port =
      static_cast<std::uint16_t>(*find_number(environment, "MASTER_PORT", 1, 65535));
  world.local_world_size = find_number(environment, "LOCAL_WORLD_SIZE", 1, world.world_size);
  world.local_rank = find_number(environment, "LOCAL_RANK", 0,
                                 world.local_world_size.value_or(world.world_size) - 1);
  if (find(environment, "TORCHELASTIC_USE_AGENT_STORE").value_or("") != "True") {
    throw Unavailable(
        "TORCHELASTIC_USE_AGENT_STORE is not \"True\", so rank 0 itself would have to host the "
        "store at " +
        world.master_address + ":" + std::to_string(world.master_port) +
        ", which this version does not do: start the job with ddplaunch or torchrun");
  }
  return world;
}

void check_backend_name(const std::string& name, const std::string& where) {
  for (const char* known : {"auto", "shm", "gloo", "nccl"}) {
    if (name == known) return;
  }
  throw InvalidUse(where + " is \"" + name + "\", but must be auto, shm, gloo or nccl");
}

namespace {

std::chrono::milliseconds parse_timeout(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double kMost = 365.0 * 24 * 3600;
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds >= 0.001) ||
      seconds > kMost) {
    throw InvalidUse("the variable DDP_TIMEOUT is \"" + text +
                     "\", but must be a number of seconds, from 0.001 up to a year");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

DebugLevel parse_debug(const std::string& text) {
  if (text == "off") return DebugLevel::off;
  if (text == "info") return DebugLevel::info;
  if (text == "detail") return DebugLevel::detail;
  throw InvalidUse("the variable DDP_DEBUG is \"" + text + "\", but must be off, info or detail");
}

std::vector<std::string> split_path(std::string_view text) {
  std::vector<std::string> folders;
  while (!text.empty()) {
    const auto colon = text.find(':');
    const auto folder = text.substr(0, colon);
    if (!folder.empty()) folders.emplace_back(folder);
    text = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  }
  return folders;
}

std::optional<rendezvous::RoundId> parse_round(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto number = parse<std::uint64_t>(std::string_view(text).substr(0, colon));
  const auto nonce = parse<std::uint64_t>(std::string_view(text).substr(colon + 1), 16);
  if (!number || !nonce) return std::nullopt;
  return rendezvous::RoundId{*number, *nonce};
}

}  // namespace

Settings read_settings(const Environment& environment) {
  Settings settings;
  if (const auto backend = find(environment, "DDP_BACKEND")) {
    check_backend_name(*backend, "the variable DDP_BACKEND");
    settings.backend = *backend;
  }
  if (const auto timeout = find(environment, "DDP_TIMEOUT")) {
    settings.timeout = parse_timeout(*timeout);
  }
  if (const auto debug = find(environment, "DDP_DEBUG")) settings.debug = parse_debug(*debug);
  settings.plugin_path = split_path(find(environment, "DDP_PLUGIN_PATH").value_or(""));
  settings.socket_address = find(environment, "DDP_SOCKET_ADDRESS").value_or("");
  settings.node_id = find(environment, "DDP_NODE_ID").value_or("");
  settings.control_page = find_number(environment, "DDP_SHM_FD", 0, 1 << 20);
  if (const auto round = find(environment, "DDP_ROUND")) {
    settings.round = parse_round(*round);
    if (!settings.round) {
      throw InvalidUse("the variable DDP_ROUND is \"" + *round +
                       "\", which is not what ddplaunch sets; unset it");
    }
  } else {
    const auto restarts = find(environment, "TORCHELASTIC_RESTART_COUNT").value_or("0");
    if (restarts != "0") settings.attempt = restarts;
  }
  return settings;
}

}  // namespace ddp::sdk
