// Makes a plug-in (a table of C functions) look like any other back-end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ddp/backend.h>

#include "worker_sdk/backends/backend.h"
#include "worker_sdk/backends/death_watch.h"
#include "worker_sdk/core/member.h"
#include "worker_sdk/io/key_value_client.h"
#include "worker_sdk/io/shared_memory.h"

namespace ddp::sdk {

struct PluginOptions {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  int device = -1;  // GPU, -1: host memory
  Milliseconds timeout{0};
  std::string local_address;        // literal; empty: the plug-in chooses
  std::string key_prefix;           // of everything it writes into the store
  KeyValueClient* store = nullptr;  // outlives the back-end
  // Has the launcher told of a death? Costs next to nothing, asked from another thread. Empty: no
  // launcher would tell.
  std::function<bool()> somebody_died;
  // Who has died, as far as the launcher has said; asked when the plug-in reports a failure.
  std::function<std::optional<Death>()> find_death;
};

class PluginBackend final : public Backend {
 public:
  // Collective. Throws what a call throws.
  PluginBackend(const ddp_backend_v1& table, PluginOptions options);
  ~PluginBackend() override;

  [[nodiscard]] std::string name() const override { return table_.name; }
  void run(const Call& call, std::chrono::milliseconds timeout) override;

 private:
  static ddp_status set(void* self, const char* key, const void* value, std::size_t length,
                        ddp_error_v1* error) noexcept;
  static ddp_status get(void* self, const char* key, std::int64_t timeout_ms,
                        void (*sink)(void* context, const void* data, std::size_t length),
                        void* context, ddp_error_v1* error) noexcept;
  void start_watch();
  void check(ddp_status status, const ddp_error_v1& error, const std::string& what) const;

  const ddp_backend_v1& table_;
  PluginOptions options_;
  ForkGuard guard_;
  ddp_store_v1 store_{};
  ddp_group* group_ = nullptr;
  std::unique_ptr<DeathWatch> watch_;  // null: nobody would tell
};

}  // namespace ddp::sdk
