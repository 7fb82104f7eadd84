// The verdict for programs: the same as on stderr, as one JSON object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/core/verdict.h"
#include "rendezvous/core/membership.h"

namespace ddp::launcher {

struct ReportFacts {
  std::int32_t exit_code = 0;                       // of this launcher
  std::optional<rendezvous::Verdict> verdict = {};  // absent: the coordinator gave none
  std::string reason = {};                          // then: why this launcher left
  std::string run_id = {};
  std::string host = {};
};

// The fields are in README.md, "The report". Ends in a newline.
[[nodiscard]] std::string verdict_json(const ReportFacts& facts, const VerdictContext& context);

}  // namespace ddp::launcher
