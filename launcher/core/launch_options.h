// From options as text to a validated LaunchConfig: what torchrun's options mean, and which of them
// fit together.
#pragma once

#include <functional>
#include <string>

#include "launcher/core/given_options.h"
#include "launcher/core/launch_config.h"
#include "rendezvous/core/result.h"

namespace ddp::launcher {

// What the command line needs to know of this machine. The functions look, and change nothing.
struct HostFacts {
  std::int32_t cpus = 1;
  std::function<std::int32_t()> count_gpus;  // asked only if the number matters
  std::function<bool(const std::string& path)> is_file;
  std::function<bool(const std::string& path)> is_executable_file;
  std::function<bool(const std::string& path)> exists;
  std::string random_run_id;  // used where the user gave none
};

[[nodiscard]] rendezvous::Result<LaunchConfig> make_config(const GivenOptions& given,
                                                           const Environment& environment,
                                                           const HostFacts& host);

}  // namespace ddp::launcher
