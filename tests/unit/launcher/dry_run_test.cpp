#include "launcher/core/dry_run.h"

#include <catch2/catch.hpp>
#include <sstream>

namespace {

using namespace ddp::launcher;

struct Scene {
  LaunchConfig config;
  OptionSources sources;
  Environment environment{{"HOME", "/home/a"}, {"PATH", "/bin"}};

  Scene() {
    config.program = "train";
    config.arguments = {"a b", "it's", "${local_rank}", "", "\x1b[2J"};
    config.workers = 2;
    config.run_id = "r4nd0m";
  }
  std::string text() const { return describe_plan(config, sources, environment); }
  // What stands behind the value, and the value.
  std::string line(const std::string& name) const {
    std::istringstream lines(text());
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("  " + name + "=", 0) == 0) return line.substr(3 + name.size());
    }
    return "";
  }
};

std::string squeezed(std::string text) {
  for (std::size_t at = 0; (at = text.find("   ", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace

TEST_CASE("dry run: each worker's command, as a shell would take it") {
  const std::string text = Scene().text();
  CHECK(text.find("Rank 0 (local rank 0):\n  command: train 'a b' 'it'\\''s' 0 '' '?[2J'\n") !=
        std::string::npos);
  CHECK(text.find("Rank 1 (local rank 1):\n  command: train 'a b' 'it'\\''s' 1 ") !=
        std::string::npos);
  CHECK(text.find("2 workers on this node: ranks 0 to 1 of 2. Nothing was started.\n") !=
        std::string::npos);
}

TEST_CASE("dry run: the source of each value") {
  Scene scene;
  scene.sources.note("nproc-per-node", "--nproc-per-node=2");
  scene.sources.note("role", "PET_ROLE");
  CHECK(squeezed(scene.line("LOCAL_WORLD_SIZE")) == "2  --nproc-per-node=2");
  CHECK(squeezed(scene.line("WORLD_SIZE")) == "2  --nproc-per-node=2, default of --nnodes");
  CHECK(squeezed(scene.line("ROLE_NAME")) == "default  PET_ROLE");
  CHECK(squeezed(scene.line("TORCHELASTIC_MAX_RESTARTS")) == "0  default of --max-restarts");
}

TEST_CASE("dry run: what is only known later is said to be") {
  Scene scene;
  CHECK(squeezed(scene.line("MASTER_PORT")) == "<a fresh port>  default of --master-port");
  CHECK(squeezed(scene.line("TORCHELASTIC_RUN_ID")) == "<random>  default of --rdzv-id");
  CHECK(scene.line("DDP_ROUND").find('<') == 0);
  scene.config.port_range = ddp::rendezvous::PortRange{{40}, {50}};
  scene.sources.note("port-range", "--port-range=40-50");
  CHECK(squeezed(scene.line("MASTER_PORT")) == "<from 40 to 50>  --port-range=40-50");
  scene.config.master_port = ddp::rendezvous::Port{44};
  scene.sources.note("master-port", "--master-port=44");
  CHECK(squeezed(scene.line("MASTER_PORT")) == "44  --master-port=44");
}

TEST_CASE("dry run: the inherited environment is counted, and shown on request") {
  Scene scene;
  CHECK(scene.line("HOME").empty());
  CHECK(scene.text().find("and 2 variables of ddplaunch's own environment") != std::string::npos);
  scene.config.verbose = true;
  CHECK(squeezed(scene.line("HOME")) == "/home/a  the environment");
  CHECK(scene.text().find("variables of ddplaunch's own") == std::string::npos);
}

TEST_CASE("dry run: whose number of threads it is") {
  Scene scene;
  CHECK(squeezed(scene.line("OMP_NUM_THREADS")) == "1  ddplaunch, unless the environment has it");
  scene.environment["OMP_NUM_THREADS"] = "1";
  CHECK(squeezed(scene.line("OMP_NUM_THREADS")) == "1  the environment");
}

TEST_CASE("dry run: a node among several") {
  Scene scene;
  scene.config.nodes = {3, 3};
  scene.config.node_rank = 1;
  scene.config.master_port = ddp::rendezvous::Port{29500};
  const std::string text = scene.text();
  CHECK(text.find("ranks 2 to 3 of 6, node 1 of 3, if the others have as many") !=
        std::string::npos);
  CHECK(text.find("Rank 3 (local rank 1):") != std::string::npos);
}
