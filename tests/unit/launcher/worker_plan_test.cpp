#include "launcher/core/worker_plan.h"

#include <catch2/catch.hpp>

namespace {

using namespace ddp::launcher;
using ddp::rendezvous::LocalRank;
using ddp::rendezvous::NodeId;
using ddp::rendezvous::Placement;
using ddp::rendezvous::Port;

using Words = std::vector<std::string>;

Placement second_node() {
  Placement placement;
  placement.round = {3, 0xab};
  placement.group_rank.value = 1;
  placement.group_world_size = 2;
  placement.first_rank.value = 4;
  placement.world_size = 6;
  placement.role_first_rank.value = 1;
  placement.role_world_size = 3;
  placement.restart_count = 2;
  placement.max_restarts = 5;
  placement.master = Endpoint{"10.0.0.1", Port{4711}};
  return placement;
}

LaunchConfig config() {
  LaunchConfig config;
  config.kind = ProgramKind::python_script;
  config.program = "train.py";
  config.workers = 2;
  config.run_id = "job7";
  config.role = "trainer";
  return config;
}

// As the worker finds it, but for what the shell adds. A name in both would be there twice.
Environment environment_of(const RoundPlan& plan, std::size_t worker) {
  Environment all = plan.environment;
  for (const auto& [name, value] : plan.workers.at(worker).environment) {
    CHECK(all.emplace(name, value).second);
  }
  return all;
}

Words arguments(const LaunchConfig& config, const Environment& base = {}) {
  return plan_workers(config, NodeId{"n"}, second_node(), base).workers.at(1).arguments;
}

}  // namespace

TEST_CASE("worker plan: the environment is torchrun's, with ours beside it") {
  const auto plan = plan_workers(config(), NodeId{"cafe"}, second_node(), {{"HOME", "/root"}});
  REQUIRE(plan.workers.size() == 2);
  CHECK(plan.workers[0].rank.value == 4);
  CHECK(plan.workers[1].local_rank.value == 1);
  CHECK(environment_of(plan, 1) ==
        Environment{{"DDP_NODE_ID", "cafe"},
                    {"DDP_ROUND", "3:00000000000000ab"},
                    {"GROUP_RANK", "1"},
                    {"GROUP_WORLD_SIZE", "2"},
                    {"HOME", "/root"},
                    {"LOCAL_RANK", "1"},
                    {"LOCAL_WORLD_SIZE", "2"},
                    {"MASTER_ADDR", "10.0.0.1"},
                    {"MASTER_PORT", "4711"},
                    {"OMP_NUM_THREADS", "1"},
                    {"RANK", "5"},
                    {"ROLE_NAME", "trainer"},
                    {"ROLE_RANK", "2"},
                    {"ROLE_WORLD_SIZE", "3"},
                    {"TORCHELASTIC_MAX_RESTARTS", "5"},
                    {"TORCHELASTIC_RESTART_COUNT", "2"},
                    {"TORCHELASTIC_RUN_ID", "job7"},
                    {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                    {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                    {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                    {"WORLD_SIZE", "6"}});
}

TEST_CASE("worker plan: what an outer launcher left behind does not reach a worker") {
  const Environment stale = {
      {"RANK", "77"},       {"LOCAL_RANK", "77"}, {"WORLD_SIZE", "99"},
      {"MASTER_PORT", "1"}, {"DDP_SHM_FD", "9"},  {"TORCHELASTIC_ERROR_FILE", "/outer/error.json"}};
  const Environment made =
      environment_of(plan_workers(config(), NodeId{"n"}, second_node(), stale), 0);
  CHECK(made.at("RANK") == "4");
  CHECK(made.at("LOCAL_RANK") == "0");
  CHECK(made.at("WORLD_SIZE") == "6");
  CHECK(made.at("MASTER_PORT") == "4711");
  CHECK(made.count("DDP_SHM_FD") == 0);
  CHECK(made.count("TORCHELASTIC_ERROR_FILE") == 0);
}

TEST_CASE("worker plan: the user's own thread count and NCCL setting hold") {
  LaunchConfig one = config();
  one.workers = 1;
  const NodeId node{"n"};
  CHECK(plan_workers(one, node, second_node(), {}).environment.count("OMP_NUM_THREADS") == 0);
  const Environment own = {{"OMP_NUM_THREADS", "8"}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}};
  const Environment made = plan_workers(config(), node, second_node(), own).environment;
  CHECK(made.at("OMP_NUM_THREADS") == "8");
  CHECK(made.at("TORCH_NCCL_ASYNC_ERROR_HANDLING") == "0");
}

TEST_CASE("worker plan: scripts and modules run under python, unbuffered") {
  LaunchConfig made = config();
  made.arguments = {"--lr", "0.1"};
  CHECK(arguments(made) == Words{"python3", "-u", "train.py", "--lr", "0.1"});
  CHECK(arguments(made, {{"PYTHON_EXEC", "/opt/py"}})[0] == "/opt/py");
  CHECK(arguments(made, {{"PYTHON_EXEC", ""}})[0] == "python3");
  made.kind = ProgramKind::python_module;
  made.program = "pkg.train";
  CHECK(arguments(made) == Words{"python3", "-u", "-m", "pkg.train", "--lr", "0.1"});
}

TEST_CASE("worker plan: macros are replaced in arguments and scripts, never in an executable") {
  LaunchConfig made = config();
  made.program = "run_${local_rank}.py";
  made.arguments = {"out/$local_rank.log"};
  CHECK(arguments(made) == Words{"python3", "-u", "run_1.py", "out/1.log"});
  made.kind = ProgramKind::executable;
  CHECK(arguments(made) == Words{"run_${local_rank}.py", "out/1.log"});
}

TEST_CASE("worker plan: macros follow Python's string.Template") {
  const auto replaced = [](const char* text) { return substitute_macros(text, LocalRank{12}); };
  CHECK(replaced("") == "");
  CHECK(replaced("plain") == "plain");
  CHECK(replaced("${local_rank}") == "12");
  CHECK(replaced("a$local_rank-b") == "a12-b");
  CHECK(replaced("$local_rank$local_rank") == "1212");
  CHECK(replaced("$local_rank_x ${local_rank_x}") == "$local_rank_x ${local_rank_x}");
  CHECK(replaced("$local_rank2") == "$local_rank2");
  CHECK(replaced("$LOCAL_RANK") == "$LOCAL_RANK");
  CHECK(replaced("${local_rank") == "${local_rank");
  CHECK(replaced("${local_rank x}") == "${local_rank x}");
  CHECK(replaced("$$local_rank") == "$local_rank");
  CHECK(replaced("$$$local_rank") == "$12");
  CHECK(replaced("cost: 5$") == "cost: 5$");
  CHECK(replaced("$") == "$");
  CHECK(replaced("${") == "${");
  CHECK(replaced("$5 $ {local_rank} ${}") == "$5 $ {local_rank} ${}");
  CHECK(replaced("\xff$local_rank\xfe") == "\xff\x31\x32\xfe");
  // An identifier is ASCII: the letter behind it ends it.
  CHECK(replaced("$local_rank\xc3\xa9") == "12\xc3\xa9");
}

TEST_CASE("worker plan: no two rounds share a folder") {
  Placement placement = second_node();
  placement.round.number = 1;
  placement.restart_count = 0;
  CHECK(attempt_folder(placement) == "attempt_0");
  placement.round.number = 2;
  CHECK(attempt_folder(placement) == "attempt_0.1");
  placement.restart_count = 1;
  CHECK(attempt_folder(placement) == "attempt_1");
  placement.round.number = 4;
  CHECK(attempt_folder(placement) == "attempt_1.2");
  CHECK(error_file_path("/tmp/x", placement, LocalRank{11}) == "/tmp/x/attempt_1.2/11/error.json");
}
