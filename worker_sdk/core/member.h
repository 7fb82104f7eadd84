// What each rank tells the others of itself when a group starts, and what follows from it: who
// shares a host, and what carries the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddp::sdk {

// Published as JSON under /ddp/1/<group>/member/<rank> (PROTOCOL.md).
struct Member {
  int rank = 0;        // the key has it
  std::string host;    // for people
  std::string node;    // DDP_NODE_ID, or the same as `system`
  std::string system;  // boot id and network namespace
  std::int64_t pid = 0;
  std::string address;       // by which others reach this rank
  std::string backend;       // asked for
  std::string sdk;           // version
  int devices = 0;           // GPUs that the "nccl" plug-in could use here
  std::string no_devices;    // why there are none
  std::string control_page;  // identity of the agent's page, empty: none
};

[[nodiscard]] std::string encode_member(const Member& member);
// Throws Unavailable if the text is not what encode_member makes.
[[nodiscard]] Member decode_member(int rank, const std::string& text);

// The agent's word counts where both have one, else boot and network namespace.
[[nodiscard]] bool same_host(const Member& a, const Member& b);

// The ranks that share this rank's host, in order, itself included.
[[nodiscard]] std::vector<int> local_ranks(const std::vector<Member>& members, int rank);

// All local ranks have inherited one and the same page.
[[nodiscard]] bool share_control_page(const std::vector<Member>& members,
                                      const std::vector<int>& local_ranks);

struct BackendChoice {
  bool nccl = false;           // for GPU memory
  bool shared_memory = false;  // for host memory: all ranks are on one host
  bool must_share = false;     // shared memory was asked for by name: Gloo is no substitute
};

// The same on every rank, as it depends on nothing but the members. Throws Mismatch (ranks ask for
// different back-ends) or Unavailable (what they ask for cannot be had).
[[nodiscard]] BackendChoice choose_backends(const std::vector<Member>& members);

// Where a rank's shared memory is to be opened; under /ddp/1/<group>/shm/<first rank of the host>.
struct SharedMemoryRecord {
  std::int64_t pid = 0;
  int fd = -1;
  std::uint64_t size = 0;
  std::string token;    // 32 hexadecimal digits, must be found inside
  int control_fd = -1;  // of the control page, where the agent has given none
};

[[nodiscard]] std::string encode_record(const SharedMemoryRecord& record);
// Throws Unavailable.
[[nodiscard]] SharedMemoryRecord decode_record(const std::string& text);

// Who has died, as the control page or the store tells it.
struct Death {
  int rank = -1;  // -1: a whole node, or not known
  std::string host;
  std::string reason;  // one sentence without a full stop
};
// "rank 3 on host-x is lost (killed by SIGKILL)"
[[nodiscard]] std::string describe(const Death& death);
// The agent's notice in the store, JSON of `failure` (PROTOCOL.md).
[[nodiscard]] std::optional<Death> decode_death_notice(const std::string& text);

}  // namespace ddp::sdk
