#include <catch2/catch.hpp>
#include <ddp/error.hpp>
#include <string>
#include <vector>

#include "worker_sdk/core/environment.h"

namespace ddp::sdk {
namespace {

using Catch::Matchers::Contains;

Environment complete() {
  return {{"RANK", "1"},
          {"WORLD_SIZE", "4"},
          {"MASTER_ADDR", "node-a"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
}

Environment with(Environment environment, const std::string& name, const std::string& value) {
  environment[name] = value;
  return environment;
}

Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

template <typename E>
std::string message_of(const Environment& environment) {
  try {
    static_cast<void>(read_world(environment));
    static_cast<void>(read_settings(environment));
  } catch (const E& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

TEST_CASE("environment: a complete set places the process") {
  const auto world = read_world(complete());
  REQUIRE(world);
  CHECK(world->rank == 1);
  CHECK(world->world_size == 4);
  CHECK(world->master_address == "node-a");
  CHECK(world->master_port == 29500);
  CHECK_FALSE(world->local_rank);
  const auto local = read_world(with(with(complete(), "LOCAL_RANK", "1"), "LOCAL_WORLD_SIZE", "2"));
  CHECK(local->local_rank == 1);
  CHECK(local->local_world_size == 2);
}

TEST_CASE("environment: nothing at all means alone") {
  CHECK_FALSE(read_world({}));
  CHECK_FALSE(read_world({{"PATH", "/bin"}, {"RANK", ""}}));
}

TEST_CASE("environment: an incomplete set is named, not guessed") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    CHECK_THAT(message_of<InvalidUse>(without(complete(), name)),
               Contains(std::string("missing: ") + name));
  }
  CHECK_THAT(message_of<InvalidUse>({{"MASTER_ADDR", "x"}}),
             Contains("missing: RANK, WORLD_SIZE, MASTER_PORT"));
}

TEST_CASE("environment: values that make no sense are refused by name") {
  struct Row {
    const char* name;
    const char* value;
  };
  for (const Row& row :
       {Row{"RANK", "4"}, Row{"RANK", "-1"}, Row{"RANK", "one"}, Row{"RANK", "1x"},
        Row{"WORLD_SIZE", "0"}, Row{"WORLD_SIZE", "99999999999"}, Row{"MASTER_PORT", "0"},
        Row{"MASTER_PORT", "65536"}, Row{"LOCAL_RANK", "4"}, Row{"LOCAL_WORLD_SIZE", "5"},
        Row{"DDP_BACKEND", "mpi"}, Row{"DDP_TIMEOUT", "soon"}, Row{"DDP_TIMEOUT", "0"},
        Row{"DDP_TIMEOUT", "nan"}, Row{"DDP_TIMEOUT", "1e30"}, Row{"DDP_DEBUG", "yes"},
        Row{"DDP_SHM_FD", "-3"}, Row{"DDP_ROUND", "1"}, Row{"DDP_ROUND", "1:xyz"}}) {
    INFO(row.name << "=" << row.value);
    CHECK_THAT(message_of<InvalidUse>(with(complete(), row.name, row.value)), Contains(row.name));
  }
}

TEST_CASE("environment: one of several under another launcher is not run as if alone") {
  CHECK_THAT(
      message_of<Unavailable>({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
      Contains("Open MPI"));
  CHECK_THAT(message_of<Unavailable>({{"PMI_RANK", "0"}}), Contains("PMI"));
  CHECK_THAT(message_of<Unavailable>({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}),
             Contains("Slurm"));
  CHECK_THAT(
      message_of<Unavailable>(
          {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
      Contains("PMI"));
}

TEST_CASE("environment: the only process of another launcher is alone") {
  CHECK_FALSE(read_world({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  CHECK_FALSE(
      read_world({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}}));
}

TEST_CASE("environment: a complete set counts more than another launcher's variables") {
  CHECK(read_world(with(complete(), "SLURM_PROCID", "7"))->rank == 1);
}

TEST_CASE("environment: without the launcher's store the message says what to do") {
  const Environment lone = without(complete(), "TORCHELASTIC_USE_AGENT_STORE");
  CHECK_THAT(message_of<Unavailable>(lone), Contains("ddplaunch or torchrun"));
  CHECK_THAT(message_of<Unavailable>(with(lone, "TORCHELASTIC_USE_AGENT_STORE", "true")),
             Contains("is not \"True\""));
}

TEST_CASE("environment: settings have defaults, and what is set is taken") {
  const Settings plain = read_settings({});
  CHECK(plain.backend == "auto");
  CHECK(plain.timeout == std::chrono::minutes(30));
  CHECK(plain.debug == DebugLevel::off);
  CHECK_FALSE(plain.control_page);
  CHECK_FALSE(plain.round);

  const Settings set = read_settings({{"DDP_BACKEND", "gloo"},
                                      {"DDP_TIMEOUT", "1.5"},
                                      {"DDP_DEBUG", "detail"},
                                      {"DDP_PLUGIN_PATH", "/a::/b c:"},
                                      {"DDP_SOCKET_ADDRESS", "10.0.0.1"},
                                      {"DDP_NODE_ID", "abc"},
                                      {"DDP_SHM_FD", "7"},
                                      {"DDP_ROUND", "3:ff00000000000001"}});
  CHECK(set.backend == "gloo");
  CHECK(set.timeout == std::chrono::milliseconds(1500));
  CHECK(set.debug == DebugLevel::detail);
  CHECK(set.plugin_path == std::vector<std::string>{"/a", "/b c"});
  CHECK(set.socket_address == "10.0.0.1");
  CHECK(set.node_id == "abc");
  CHECK(set.control_page == 7);
  CHECK(set.round == rendezvous::RoundId{3, 0xff00000000000001});
}

TEST_CASE("settings: a restart is known by its number where the store outlives it") {
  const Environment restarted{{"TORCHELASTIC_RESTART_COUNT", "2"}};
  CHECK(read_settings({}).attempt.empty());
  CHECK(read_settings({{"TORCHELASTIC_RESTART_COUNT", "0"}}).attempt.empty());
  CHECK(read_settings(restarted).attempt == "2");
  CHECK(read_settings(with(restarted, "DDP_ROUND", "3:1")).attempt.empty());
}

}  // namespace
}  // namespace ddp::sdk
