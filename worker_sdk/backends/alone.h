// The back-end of a group of one: there is nobody to send to, and every reduction is its own input.
#pragma once

#include <string>

#include "worker_sdk/backends/backend.h"

namespace ddp::sdk {

class AloneBackend final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "alone"; }
  void run(const Call&, std::chrono::milliseconds) override {}
};

}  // namespace ddp::sdk
