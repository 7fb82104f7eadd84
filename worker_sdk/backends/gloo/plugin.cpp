// The table of functions that libddp_gloo.so exports.
#include <memory>

#include "worker_sdk/backends/gloo/gloo_group.h"
#include "worker_sdk/backends/seam.h"

namespace {

using ddp::backends::fenced;
using ddp::backends::GlooGroup;

GlooGroup& group_of(ddp_group* group) {
  return *reinterpret_cast<GlooGroup*>(group);
}

ddp_status available(ddp_error_v1* /*error*/) {
  return DDP_OK;
}

ddp_status create(const ddp_group_options_v1* options, ddp_group** group, ddp_error_v1* error) {
  return fenced(error, [&] {
    ddp::backends::check_options(options);
    *group = reinterpret_cast<ddp_group*>(std::make_unique<GlooGroup>(*options).release());
  });
}

ddp_status all_reduce(ddp_group* group, const ddp_call_v1* call, ddp_error_v1* error) {
  return fenced(error, [&] { group_of(group).all_reduce(*call); });
}

ddp_status broadcast(ddp_group* group, const ddp_call_v1* call, ddp_error_v1* error) {
  return fenced(error, [&] { group_of(group).broadcast(*call); });
}

ddp_status barrier(ddp_group* group, const ddp_call_v1* call, ddp_error_v1* error) {
  return fenced(error, [&] { group_of(group).barrier(*call); });
}

ddp_status poll(ddp_group* /*group*/, ddp_error_v1* /*error*/) {
  return DDP_OK;
}

void abort_group(ddp_group* group) {
  group_of(group).abort();
}

void destroy(ddp_group* group) {
  std::unique_ptr<GlooGroup>(&group_of(group)).reset();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ddp_backend_v1* ddp_backend_v1_entry() {
  static const ddp_backend_v1 table = {sizeof(ddp_backend_v1),
                                       DDP_BACKEND_ABI_VERSION,
                                       "gloo",
                                       available,
                                       create,
                                       all_reduce,
                                       broadcast,
                                       barrier,
                                       poll,
                                       abort_group,
                                       destroy};
  return &table;
}
