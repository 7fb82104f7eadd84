// How the ranks of one host find each other's memory, and prove by it that they share a host.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/core/member.h"
#include "worker_sdk/io/control_page.h"
#include "worker_sdk/io/key_value_client.h"
#include "worker_sdk/io/shared_memory.h"

namespace ddp::sdk::shm {

struct Peer {
  int rank = 0;
  std::int64_t pid = 0;
  std::string host;
};

// The ranks that share the memory, and which of them this one is.
struct Place {
  std::vector<Peer> peers;  // in rank order, this rank included
  int position = 0;         // of this rank
};

struct SharedGroup {
  Mapping memory;  // with a valid Header
  std::shared_ptr<ControlPageView> page;
};

// Collective over all of `place`. `agents_page` must be given on all of them or on none. Empty, on
// every rank: somebody could not map the memory, and `why` says who and for what reason. Throws
// what the store throws.
[[nodiscard]] std::optional<SharedGroup> meet(KeyValueClient& store, const std::string& prefix,
                                              const Place& place,
                                              const std::shared_ptr<ControlPageView>& agents_page,
                                              Milliseconds timeout, std::string& why);

}  // namespace ddp::sdk::shm
