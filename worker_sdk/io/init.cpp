#include <atomic>
#include <ddp/error.hpp>
#include <ddp/process_group.hpp>
#include <optional>
#include <string>
#include <utility>

#include "worker_sdk/core/environment.h"
#include "worker_sdk/io/deadline.h"
#include "worker_sdk/io/group_builder.h"
#include "worker_sdk/io/host_facts.h"

namespace ddp {
inline namespace v1 {
namespace {

// The store outlives a group, and torchrun's even the processes, so each group needs a name of its
// own. The number of groups made is the only thing that this library remembers for a whole process.
std::string group_name(int made, const std::string& attempt) {
  return "world" + (made == 0 ? "" : "." + std::to_string(made)) +
         (attempt.empty() ? "" : "@" + attempt);
}

}  // namespace

ProcessGroup init_process_group(const InitOptions& options) {
  static std::atomic<int> made{0};
  const sdk::Environment environment = sdk::copy_environment();
  sdk::Settings settings = sdk::read_settings(environment);
  if (!options.backend.empty()) {
    sdk::check_backend_name(options.backend, "InitOptions::backend");
    settings.backend = options.backend;
  }
  if (options.timeout.count() < 0) {
    throw InvalidUse("InitOptions::timeout is " + std::to_string(options.timeout.count()) +
                     " ms, but must not be negative; 0 leaves it to DDP_TIMEOUT");
  }
  if (options.timeout.count() > 0) settings.timeout = sdk::bounded(options.timeout);
  const std::optional<sdk::World> world = sdk::read_world(environment);
  if (!world) return ProcessGroup(sdk::build_alone(settings));
  std::string name = group_name(made.load(), settings.attempt);
  sdk::GroupBuilder builder(*world, std::move(settings), std::move(name));
  ProcessGroup group(builder.build());
  ++made;
  return group;
}

}  // namespace v1
}  // namespace ddp
