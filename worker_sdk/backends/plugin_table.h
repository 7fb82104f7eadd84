// The table of functions of a plug-in, made from its class of groups.
#pragma once

#include <memory>

#include "worker_sdk/backends/seam.h"

namespace ddp::backends {

// A Group has all_reduce, broadcast and barrier of a `const ddp_call_v1&`, poll and abort. It
// throws Failure.
template <class Group>
class PluginTable {
 public:
  using Available = ddp_status (*)(ddp_error_v1*);
  using Create = ddp_status (*)(const ddp_group_options_v1*, ddp_group**, ddp_error_v1*);

  static ddp_backend_v1 make(const char* name, Available available, Create create) {
    return {sizeof(ddp_backend_v1),
            DDP_BACKEND_ABI_VERSION,
            name,
            available,
            create,
            call<&Group::all_reduce>,
            call<&Group::broadcast>,
            call<&Group::barrier>,
            poll,
            abort,
            destroy};
  }

  static ddp_group* handle_of(std::unique_ptr<Group> group) {
    return reinterpret_cast<ddp_group*>(group.release());
  }

 private:
  static Group& group_of(ddp_group* group) { return *reinterpret_cast<Group*>(group); }

  template <void (Group::*method)(const ddp_call_v1&)>
  static ddp_status call(ddp_group* group, const ddp_call_v1* arguments, ddp_error_v1* error) {
    return fenced(error, [&] {
      if (arguments == nullptr) throw Failure(DDP_INVALID_USE, "no call given");
      (group_of(group).*method)(*arguments);
    });
  }

  static ddp_status poll(ddp_group* group, ddp_error_v1* error) {
    ddp_status state = DDP_OK;
    const ddp_status failed = fenced(error, [&] { state = group_of(group).poll(); });
    return failed != DDP_OK ? failed : state;
  }

  static void abort(ddp_group* group) {
    fenced(nullptr, [&] { group_of(group).abort(); });
  }

  static void destroy(ddp_group* group) { std::unique_ptr<Group>(&group_of(group)).reset(); }
};

}  // namespace ddp::backends
