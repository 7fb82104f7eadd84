// What libddp_gloo.so exports.
#include "worker_sdk/backends/gloo/gloo_group.h"
#include "worker_sdk/backends/plugin_table.h"

namespace {

using ddp::backends::GlooGroup;
using Table = ddp::backends::PluginTable<GlooGroup>;

ddp_status available(ddp_error_v1* /*error*/) {
  return DDP_OK;
}

ddp_status create(const ddp_group_options_v1* options, ddp_group** group, ddp_error_v1* error) {
  return ddp::backends::fenced(error, [&] {
    ddp::backends::check_options(options);
    *group = Table::handle_of(std::make_unique<GlooGroup>(*options));
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ddp_backend_v1* ddp_backend_v1_entry() {
  static const ddp_backend_v1 table = Table::make("gloo", available, create);
  return &table;
}
