// Knows which processes of this host have ended, by pidfd.
#pragma once

#include <cstdint>
#include <vector>

#include "worker_sdk/io/unique_fd.h"

namespace ddp::sdk::shm {

class PeerWatch {
 public:
  PeerWatch() = default;
  // One process per local rank. `self` is not watched.
  PeerWatch(const std::vector<std::int64_t>& pids, int self);

  // In one system call: for each local rank, has it ended?
  [[nodiscard]] std::vector<bool> ended() const;
  [[nodiscard]] bool empty() const { return watched_.empty(); }

 private:
  struct Watched {
    UniqueFd fd;  // invalid: there was no such process any more
    bool self = false;
  };
  std::vector<Watched> watched_;
};

}  // namespace ddp::sdk::shm
