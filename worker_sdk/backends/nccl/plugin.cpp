// What libddp_nccl.so exports.
#include "worker_sdk/backends/nccl/libraries.h"
#include "worker_sdk/backends/nccl/nccl_group.h"
#include "worker_sdk/backends/plugin_table.h"

namespace {

using ddp::backends::libraries;
using ddp::backends::NcclGroup;
using Table = ddp::backends::PluginTable<NcclGroup>;

void require_libraries() {
  if (libraries().reason.empty()) return;
  throw ddp::backends::Failure(DDP_UNAVAILABLE, libraries().reason);
}

ddp_status available(ddp_error_v1* error) {
  return ddp::backends::fenced(error, [] { require_libraries(); });
}

ddp_status create(const ddp_group_options_v1* options, ddp_group** group, ddp_error_v1* error) {
  return ddp::backends::fenced(error, [&] {
    ddp::backends::check_options(options);
    require_libraries();
    *group = Table::handle_of(std::make_unique<NcclGroup>(*options, libraries()));
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ddp_backend_v1* ddp_backend_v1_entry() {
  static const ddp_backend_v1 table = Table::make("nccl", available, create);
  return &table;
}
