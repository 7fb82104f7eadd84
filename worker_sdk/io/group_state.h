// Everything that a ProcessGroup owns: who is in it, its store, its back-ends, and what has gone
// wrong.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include <ddp/store.hpp>

#include "worker_sdk/backends/backend.h"
#include "worker_sdk/io/deadline.h"
#include "worker_sdk/io/key_value_client.h"
#include "worker_sdk/io/shared_memory.h"

namespace ddp::sdk {

struct GroupFacts {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  Milliseconds timeout{0};
};

class GroupState {
 public:
  // `device` carries GPU memory and may be null.
  GroupState(const GroupFacts& facts, std::shared_ptr<KeyValueClient> client,
             std::unique_ptr<Backend> host, std::unique_ptr<Backend> device);

  [[nodiscard]] const GroupFacts& facts() const { return facts_; }
  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] std::string host_backend() const { return host_->name(); }
  [[nodiscard]] std::string backend() const { return device_ ? device_->name() : host_->name(); }

  // Numbers the call, checks it and has it carried out.
  void run(Call call);

 private:
  [[nodiscard]] Backend& backend_for(const Call& call) const;

  GroupFacts facts_;
  std::shared_ptr<KeyValueClient> client_;  // outlives the back-ends, which use it
  Store store_;
  std::unique_ptr<Backend> host_;
  std::unique_ptr<Backend> device_;
  ForkGuard guard_;
  std::mutex mutex_;
  std::uint64_t sequence_ = 0;
  std::exception_ptr broken_;
};

}  // namespace ddp::sdk
