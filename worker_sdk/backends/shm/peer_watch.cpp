#include "worker_sdk/backends/shm/peer_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace ddp::sdk::shm {

PeerWatch::PeerWatch(const std::vector<std::int64_t>& pids, int self) {
  for (std::size_t i = 0; i < pids.size(); ++i) {
    Watched watched;
    watched.self = static_cast<int>(i) == self;
    if (!watched.self) {
      watched.fd = UniqueFd(static_cast<int>(
          ::syscall(SYS_pidfd_open, static_cast<pid_t>(pids[i]), 0)));  // close-on-exec by nature
      // Anything but "no such process" (a limit, a filter) tells nothing about the peer.
      if (!watched.fd.valid() && errno != ESRCH) watched.self = true;
    }
    watched_.push_back(std::move(watched));
  }
}

std::vector<bool> PeerWatch::ended() const {
  std::vector<pollfd> entries;
  for (const Watched& watched : watched_) entries.push_back({watched.fd.get(), POLLIN, 0});
  std::vector<bool> ended(watched_.size(), false);
  if (::poll(entries.data(), entries.size(), 0) < 0) return ended;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (watched_[i].self) continue;
    ended[i] = !watched_[i].fd.valid() || (entries[i].revents & POLLIN) != 0;
  }
  return ended;
}

}  // namespace ddp::sdk::shm
