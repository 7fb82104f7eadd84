// The first process of the workers' PID namespace: all that is in it dies with this one, and this
// one with the agent.
#pragma once

#include <sys/types.h>

#include <array>

namespace ddp::launcher {

// What it tells the agent, once, with two descriptors: its root and its folder, seen from its mount
// namespace.
struct InitReady {
  int error = 0;       // errno: there is no namespace to be used
  int proc_error = 0;  // errno: processes in it see the /proc of the outside
};

// The answer to a request to sweep.
struct SweepAnswer {
  bool all_gone = true;
  std::array<char, 256> left{};  // "17 (name), state D" …, numbers of this namespace
};

// Descriptor numbers go over the socket beside InitReady, in this order.
inline constexpr int kDescriptorsFromInit = 2;

// Never returns. For a child that was born as the first process of a PID namespace, with a mount
// namespace of its own; it allocates nothing. `socket` (SOCK_SEQPACKET): each byte from the agent
// is a request to sweep; at its end of file this process exits, and the kernel kills the rest.
// `owns_users`: it is in a new user namespace too, and maps that user and group into it.
[[noreturn]] void run_namespace_init(int socket, bool owns_users, uid_t user, gid_t group);

}  // namespace ddp::launcher
