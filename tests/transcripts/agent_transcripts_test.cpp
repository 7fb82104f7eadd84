// Each file in agent/ is a conversation with the agent machine, and what it must answer.
// DDP_REWRITE_TRANSCRIPTS=1 writes the answers anew: read the diff before you commit it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "agent_script.h"

namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> scripts() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(DDP_TRANSCRIPTS "/agent")) {
    found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("agent: answers as written in its transcripts") {
  const std::vector<fs::path> paths = scripts();
  REQUIRE(paths.size() >= 12);
  for (const fs::path& path : paths) {
    INFO(path.filename().string());
    const std::string expected = read(path);
    const std::string actual = ddp::testing::play_agent_script(expected);
    if (std::getenv("DDP_REWRITE_TRANSCRIPTS") != nullptr) {
      std::ofstream(path, std::ios::binary) << actual;
    } else {
      CHECK(actual == expected);
    }
  }
}

TEST_CASE("agent: a transcript played twice gives the same answers") {
  for (const fs::path& path : scripts()) {
    const std::string script = read(path);
    CHECK(ddp::testing::play_agent_script(script) == ddp::testing::play_agent_script(script));
  }
}
