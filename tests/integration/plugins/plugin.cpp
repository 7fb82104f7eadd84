#include "tests/integration/plugins/plugin.h"

#include <dlfcn.h>

#include <stdexcept>

namespace ddp::test {

Plugin::Plugin(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  const auto entry =
      reinterpret_cast<ddp_backend_v1_entry_fn>(dlsym(handle, "ddp_backend_v1_entry"));
  if (entry == nullptr) throw std::runtime_error("the plug-in has no entry");
  table_ = entry();
}

ddp_error_v1 empty_error() {
  ddp_error_v1 error{};
  error.size = sizeof error;
  error.rank = -1;
  return error;
}

Group::Group(const ddp_backend_v1& table, const FileStore& store, const GroupSettings& settings)
    : table_(table), error_(empty_error()) {
  ddp_group_options_v1 options{};
  options.size = sizeof options;
  options.rank = settings.rank;
  options.world_size = settings.world_size;
  options.local_rank = settings.rank;
  options.local_world_size = settings.world_size;
  options.device = settings.device;
  options.timeout_ms = settings.timeout_ms;
  options.local_address = "127.0.0.1";
  options.store = store.table();
  status_ = table_.create(&options, &group_, &error_);
}

Group::~Group() {
  if (group_ != nullptr) table_.destroy(group_);
}

ddp_call_v1 Group::call() const {
  ddp_call_v1 call{};
  call.size = sizeof call;
  call.timeout_ms = -1;
  call.premul = premul_;
  call.stream = stream_;
  return call;
}

ddp_status Group::all_reduce(ddp_dtype dtype, ddp_reduce_op op, const void* input, void* output,
                             size_t count, int64_t timeout_ms) {
  ddp_call_v1 arguments = call();
  arguments.dtype = dtype;
  arguments.op = op;
  arguments.input = input;
  arguments.output = output;
  arguments.count = count;
  arguments.timeout_ms = timeout_ms;
  return status_ = table_.all_reduce(group_, &arguments, &error_);
}

ddp_status Group::broadcast(ddp_dtype dtype, int root, const void* input, void* output,
                            size_t count) {
  ddp_call_v1 arguments = call();
  arguments.dtype = dtype;
  arguments.root = root;
  arguments.input = input;
  arguments.output = output;
  arguments.count = count;
  return status_ = table_.broadcast(group_, &arguments, &error_);
}

ddp_status Group::barrier() {
  const ddp_call_v1 arguments = call();
  return status_ = table_.barrier(group_, &arguments, &error_);
}

ddp_status Group::poll() {
  return status_ = table_.poll(group_, &error_);
}

void Group::abort() {
  table_.abort(group_);
}

}  // namespace ddp::test
