// From what the user typed to a LaunchConfig, a text to show, or one line on what is wrong.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "launcher/core/launch_config.h"
#include "launcher/core/launch_options.h"
#include "launcher/core/option_sources.h"

namespace ddp::launcher {

struct ShowText {
  std::string text;
};  // --help, --version, --print-completion: to stdout, exit 0
struct ShowPlan {
  LaunchConfig config;
  OptionSources sources;
};  // --dry-run
struct UsageError {
  std::string message;
};  // one line, without "ddplaunch: "; exit 2

using CommandLine = std::variant<LaunchConfig, ShowText, ShowPlan, UsageError>;

// `arguments` without the program's own name. The environment gives defaults (PET_<OPTION>).
[[nodiscard]] CommandLine parse_command_line(const std::vector<std::string>& arguments,
                                             const Environment& environment, const HostFacts& host);

}  // namespace ddp::launcher
