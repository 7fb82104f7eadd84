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

// The store outlives a group, so each group of a process needs names of its own. The only thing
// that this library remembers for a whole process.
std::string next_group_name(std::atomic<int>& made) {
  const int number = made.load();
  return number == 0 ? "world" : "world." + std::to_string(number);
}

}  // namespace

ProcessGroup init_process_group(InitOptions options) {
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
  sdk::GroupBuilder builder(*world, std::move(settings), next_group_name(made));
  ProcessGroup group(builder.build());
  ++made;
  return group;
}

}  // namespace v1
}  // namespace ddp
