// The sockets of one Gloo mesh, held so that another thread can cut them: Gloo itself has no abort.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace ddp::backends {

// Duplicates, not Gloo's own descriptors: Gloo closes those on its own thread, and their numbers
// are reused.
class MeshSockets {
 public:
  MeshSockets() = default;
  MeshSockets(const MeshSockets&) = delete;
  MeshSockets& operator=(const MeshSockets&) = delete;
  ~MeshSockets();

  // Finds this process's connected TCP sockets whose local name is in `local_names` or whose peer's
  // name is in `peer_names` (numeric "address port"), and marks Gloo's descriptors close-on-exec.
  // Returns how many.
  size_t collect(const std::vector<std::string>& local_names,
                 const std::vector<std::string>& peer_names);

  // From any thread: every blocked call on the mesh fails within milliseconds.
  void cut();
  void release();

 private:
  std::mutex mutex_;
  std::vector<int> sockets_;
};

// "address port" of a sockaddr_storage, empty for another family.
[[nodiscard]] std::string socket_name(const void* sockaddr_bytes, size_t length);

}  // namespace ddp::backends
