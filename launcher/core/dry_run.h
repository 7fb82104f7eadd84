// What --dry-run shows: what each worker would be started with, and where each value comes from.
#pragma once

#include <string>

#include "launcher/core/launch_config.h"
#include "launcher/core/option_sources.h"

namespace ddp::launcher {

// `base`: the launcher's own environment. What is only known once the job runs is shown as
// "<what it will be>"; of several nodes the others are taken to have as many workers as this one.
[[nodiscard]] std::string describe_plan(const LaunchConfig& config, const OptionSources& sources,
                                        const Environment& base);

}  // namespace ddp::launcher
