#include "worker_sdk/backends/gloo/mesh_sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ddp::backends {
namespace {

using NameGetter = int (*)(int, sockaddr*, socklen_t*);

std::string name_of(int descriptor, NameGetter getter) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getter(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return socket_name(&address, length);
}

int get_local(int fd, sockaddr* address, socklen_t* length) {
  return getsockname(fd, address, length);
}
int get_peer(int fd, sockaddr* address, socklen_t* length) {
  return getpeername(fd, address, length);
}

std::vector<int> open_descriptors() {
  std::vector<int> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) return result;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] != '.') result.push_back(std::atoi(entry->d_name));
  }
  return result;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string socket_name(const void* sockaddr_bytes, size_t length) {
  sockaddr_storage address{};
  std::memcpy(&address, sockaddr_bytes, std::min(length, sizeof address));
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string(text) + " " + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return std::string(text) + " " + std::to_string(ntohs(v6.sin6_port));
  }
  return {};
}

MeshSockets::~MeshSockets() {
  release();
}

size_t MeshSockets::collect(const std::vector<std::string>& local_names,
                            const std::vector<std::string>& peer_names) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int descriptor : open_descriptors()) {
    const std::string peer = name_of(descriptor, get_peer);
    if (peer.empty()) continue;
    if (!contains(peer_names, peer) && !contains(local_names, name_of(descriptor, get_local))) {
      continue;
    }
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0) sockets_.push_back(copy);
  }
  return sockets_.size();
}

void MeshSockets::cut() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
}

void MeshSockets::release() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int socket : sockets_) close(socket);
  sockets_.clear();
}

}  // namespace ddp::backends
