// The first process of the workers' PID namespace: all that is in it dies with this one, and this
// one with the agent.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

namespace ddp::launcher {

// What it tells the agent, once, with two descriptors: its root and its folder, seen from its mount
// namespace.
struct InitReady {
  int error = 0;       // errno: there is no namespace to be used
  int proc_error = 0;  // errno: processes in it see the /proc of the outside
};

// A request to sweep; only as many `sessions` are sent as there are. While one is carried out that
// spares some, another one that spares none takes its place: then only that one is answered.
struct SweepRequest {
  static constexpr std::size_t kMostSpared = 4096;

  unsigned number = 0;
  int signal = 0;
  unsigned count = 0;
  std::array<pid_t, kMostSpared> sessions{};  // sorted: what is in them is told to end, waited for
};

// The answer to a request to sweep.
struct SweepAnswer {
  unsigned number = 0;  // of the request
  bool all_gone = true;
  std::array<char, 256> left{};  // "17 (name), state D" …, numbers of this namespace
};

// Descriptor numbers go over the socket beside InitReady, in this order.
inline constexpr int kDescriptorsFromInit = 2;

// Never returns. For a child that was born as the first process of a PID namespace, with a mount
// namespace of its own; it allocates nothing. `socket` (SOCK_SEQPACKET): what comes from the agent
// are requests to sweep; at its end of file this process exits, and the kernel kills the rest.
// `owns_users`: it is in a new user namespace too, and maps that user and group into it.
[[noreturn]] void run_namespace_init(int socket, bool owns_users, uid_t user, gid_t group);

}  // namespace ddp::launcher
