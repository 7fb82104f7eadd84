// The back-end for ranks on one host: arrays travel through memory that all of them have mapped.
#pragma once

#include <string>

#include "worker_sdk/backends/backend.h"
#include "worker_sdk/backends/shm/rounds.h"

namespace ddp::sdk::shm {

class ShmBackend final : public Backend {
 public:
  ShmBackend(SharedGroup group, Place place, bool may_spin);

  [[nodiscard]] std::string name() const override { return "shm"; }
  void run(const Call& call, std::chrono::milliseconds timeout) override;

 private:
  void barrier();
  void broadcast(const Call& call);
  void reduce_at_once(const Call& call);
  void reduce_in_pieces(const Call& call);

  Rounds rounds_;
};

}  // namespace ddp::sdk::shm
