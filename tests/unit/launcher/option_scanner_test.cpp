#include "launcher/core/option_scanner.h"

#include <catch2/catch.hpp>

namespace {

using namespace ddp::launcher;
using Words = std::vector<std::string>;

const std::vector<OptionSpec> kSpecs = {
    {{"--nproc-per-node", "--nproc_per_node"}, true, false},
    {{"--node-rank", "--node_rank"}, true, false},
    {{"--nnodes"}, true, false},
    {{"--module", "-m"}, false, false},
    {{"--redirects", "-r"}, true, false},
    {{"--help", "-h"}, false, true},
};

// "0=2 3 | prog | a b": options by index, the program, its arguments; or "error: …".
std::string scan(const Words& words) {
  const auto line = scan_options(kSpecs, words);
  if (!line) {
    return "error: " + line.error().message;
  }
  std::string text;
  for (const ScannedOption& option : line.value().options) {
    text += std::to_string(option.spec) +
            (kSpecs[option.spec].takes_value ? "=" + option.value : std::string()) + " ";
  }
  text += "| " + line.value().program.value_or("(none)") + " |";
  for (const std::string& argument : line.value().arguments) {
    text += " " + argument;
  }
  return text;
}

}  // namespace

TEST_CASE("option scanner: a value stands behind = or in the next token") {
  CHECK(scan({"--nnodes", "2", "p"}) == "2=2 | p |");
  CHECK(scan({"--nnodes=2", "p"}) == "2=2 | p |");
  CHECK(scan({"--nnodes=", "p"}) == "2= | p |");
  CHECK(scan({"--nnodes", "", "p"}) == "2= | p |");
  CHECK(scan({"--nnodes=a=b", "p"}) == "2=a=b | p |");
  CHECK(scan({"--nnodes=--x", "p"}) == "2=--x | p |");
  CHECK(scan({"--node-rank", "-1", "p"}) == "1=-1 | p |");
}

TEST_CASE("option scanner: both spellings, and any prefix of one option only") {
  CHECK(scan({"--nproc_per_node=3", "p"}) == "0=3 | p |");
  CHECK(scan({"--nproc", "3", "p"}) == "0=3 | p |");
  CHECK(scan({"--np=3", "p"}) == "0=3 | p |");
  CHECK(scan({"--mod", "p"}) == "3 | p |");
  CHECK(scan({"--n", "3", "p"}) ==
        "error: --n is ambiguous: it could mean --nproc-per-node, --node-rank, --nnodes");
  CHECK(scan({"--nnodes", "2", "--nn", "3", "p"}) == "2=2 2=3 | p |");
}

TEST_CASE("option scanner: short options, glued values and clusters") {
  CHECK(scan({"-m", "p"}) == "3 | p |");
  CHECK(scan({"-r", "3", "p"}) == "4=3 | p |");
  CHECK(scan({"-r3", "p"}) == "4=3 | p |");
  CHECK(scan({"-r=3", "p"}) == "4=3 | p |");
  CHECK(scan({"-mr3", "p"}) == "3 4=3 | p |");
  CHECK(scan({"-mr", "3", "p"}) == "3 4=3 | p |");
}

TEST_CASE("option scanner: what follows the program is not touched") {
  CHECK(scan({"--nnodes", "2", "p", "--nnodes", "3", "--", "-h", "-x", ""}) ==
        "2=2 | p | --nnodes 3 -- -h -x ");
  CHECK(scan({"p", "--", "--"}) == "| p | -- --");
}

TEST_CASE("option scanner: one -- before the program is dropped") {
  CHECK(scan({"--nnodes=2", "--", "--odd", "x"}) == "2=2 | --odd | x");
  CHECK(scan({"--", "--", "x"}) == "| -- | x");
}

TEST_CASE("option scanner: tokens that only look like options are programs") {
  CHECK(scan({"-", "x"}) == "| - | x");
  CHECK(scan({"-5", "x"}) == "| -5 | x");
  CHECK(scan({"", "x"}) == "|  | x");
}

TEST_CASE("option scanner: without a program there is none") {
  CHECK(scan({}) == "| (none) |");
  CHECK(scan({"--nnodes", "2"}) == "2=2 | (none) |");
  CHECK(scan({"--"}) == "| (none) |");
}

TEST_CASE("option scanner: help ends the scan, errors before it count") {
  CHECK(scan({"-h", "--unknown"}) == "5 | (none) |");
  CHECK(scan({"-hx"}) == "5 | (none) |");
  CHECK(scan({"--unknown", "-h"}) == "error: unknown option --unknown; see --help");
}

TEST_CASE("option scanner: mistakes are named, with the nearest option") {
  CHECK(scan({"--nproc-pre-node", "2", "p"}) ==
        "error: unknown option --nproc-pre-node; did you mean --nproc-per-node?");
  CHECK(scan({"--nnode_rank=2", "p"}) ==
        "error: unknown option --nnode_rank; did you mean --node-rank?");
  CHECK(scan({"--nprocs", "2", "p"}) ==
        "error: unknown option --nprocs; did you mean --nproc-per-node?");
  CHECK(scan({"-nproc-per-node", "2", "p"}) ==
        "error: unknown option -nproc-per-node; did you mean --nproc-per-node?");
  CHECK(scan({"--zz", "p"}) == "error: unknown option --zz; see --help");
  CHECK(scan({"--zzzzzzzzzzzz", "p"}) == "error: unknown option --zzzzzzzzzzzz; see --help");
  CHECK(scan({"-x", "p"}) == "error: unknown option -x; see --help");
  CHECK(scan({"--nnodes"}) == "error: --nnodes needs a value");
  CHECK(scan({"--nnodes", "--", "p"}) == "error: --nnodes needs a value");
  CHECK(scan({"--nnodes", "--module", "p"}) == "error: --nnodes needs a value");
  CHECK(scan({"--module=1", "p"}) == "error: --module takes no value, but \"1\" was given");
}
