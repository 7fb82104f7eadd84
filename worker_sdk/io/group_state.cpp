#include "worker_sdk/io/group_state.h"

#include <utility>

#include <ddp/error.hpp>

#include "worker_sdk/io/device_memory.h"

namespace ddp::sdk {

GroupState::GroupState(const GroupFacts& facts, std::shared_ptr<KeyValueClient> client,
                       std::unique_ptr<Backend> host, std::unique_ptr<Backend> device)
    : facts_(facts),
      client_(std::move(client)),
      store_(client_),
      host_(std::move(host)),
      device_(std::move(device)) {}

Backend& GroupState::backend_for(const Call& call) const {
  // Nothing at all goes the same way on all ranks, whatever they point to.
  return device_ && call.count > 0 && is_device_memory(call.data) ? *device_ : *host_;
}

void GroupState::run(Call call) {
  guard_.check();
  check_call(call, facts_.world_size);
  Backend& backend = backend_for(call);
  if (&backend == host_.get()) check_host_reduction(call);
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  call.sequence = ++sequence_;
  try {
    backend.run(call, facts_.timeout);
  } catch (const InvalidUse&) {
    --sequence_;  // nothing was sent: to the other ranks this call never was
    throw;
  } catch (...) {
    broken_ = std::current_exception();
    throw;
  }
}

}  // namespace ddp::sdk
