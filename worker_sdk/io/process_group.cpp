#include <ddp/error.hpp>
#include <ddp/process_group.hpp>
#include <utility>

#include "worker_sdk/io/group_state.h"

namespace ddp {
inline namespace v1 {

ProcessGroup::ProcessGroup(std::unique_ptr<sdk::GroupState> state) : state_(std::move(state)) {}
ProcessGroup::ProcessGroup(ProcessGroup&& other) noexcept = default;
ProcessGroup& ProcessGroup::operator=(ProcessGroup&& other) noexcept = default;
ProcessGroup::~ProcessGroup() = default;

sdk::GroupState& ProcessGroup::state() const {
  if (state_ == nullptr) throw InvalidUse("this ProcessGroup has been moved from");
  return *state_;
}

int ProcessGroup::rank() const {
  return state().facts().rank;
}

int ProcessGroup::world_size() const {
  return state().facts().world_size;
}

int ProcessGroup::local_rank() const {
  return state().facts().local_rank;
}

int ProcessGroup::local_world_size() const {
  return state().facts().local_world_size;
}

std::string ProcessGroup::backend() const {
  return state().backend();
}

std::string ProcessGroup::host_backend() const {
  return state().host_backend();
}

Store& ProcessGroup::store() {
  return state().store();
}

void ProcessGroup::all_reduce_bytes(void* data, std::size_t count, DataType type, ReduceOp op) {
  sdk::Call call;
  call.kind = sdk::CallKind::all_reduce;
  call.data = data;
  call.count = count;
  call.type = type;
  call.op = op;
  state().run(call);
}

void ProcessGroup::broadcast_bytes(void* data, std::size_t count, DataType type, int root) {
  sdk::Call call;
  call.kind = sdk::CallKind::broadcast;
  call.data = data;
  call.count = count;
  call.type = type;
  call.root = root;
  state().run(call);
}

void ProcessGroup::barrier() {
  state().run(sdk::Call{});
}

}  // namespace v1
}  // namespace ddp
