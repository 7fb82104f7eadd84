// The grammar of Python's argparse: which tokens are options, which are their values, where the
// program begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/result.h"

namespace ddp::launcher {

struct OptionSpec {
  std::vector<std::string> names;  // all spellings, with their dashes
  bool takes_value = false;
  bool ends_scan = false;  // nothing after it matters (--help)
  // The name alone stands for this value: the next word isn't it.
  std::optional<std::string> implied = {};
};

struct ScannedOption {
  std::size_t spec;   // index into the specs
  std::string value;  // empty for a flag
};

struct ScannedLine {
  std::vector<ScannedOption> options;  // in the order given
  std::optional<std::string> program;
  std::vector<std::string> arguments;  // after the program, byte for byte
};

// `--name value`, `--name=value`, `-x value`, `-xvalue`, clusters of short flags, unique prefixes
// of long names (two spellings of one option don't compete), one `--` before the program.
[[nodiscard]] rendezvous::Result<ScannedLine> scan_options(
    const std::vector<OptionSpec>& specs, const std::vector<std::string>& arguments);

}  // namespace ddp::launcher
