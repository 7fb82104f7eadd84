#include "launcher/io/oom_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "launcher/core/oom_counter.h"

namespace ddp::launcher {
namespace {

// All of these files are far smaller, but for vmstat.
constexpr std::size_t kMostRead = 16 * 1024;

std::string read_file(int fd) {
  std::array<char, kMostRead> buffer;  // NOLINT: filled by the call
  const ssize_t length = ::pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

UniqueFd open_file(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

OomProbe::OomProbe(const std::string& root) {
  const UniqueFd list = open_file(root + "/proc/self/cgroup");
  const MemoryCgroups ours = list.valid() ? memory_cgroups(read_file(list.get())) : MemoryCgroups{};
  const std::string mounts = root + "/sys/fs/cgroup";
  // In a container the path may be the host's, and what is mounted our own.
  if (ours.v1) {
    const std::string file = "/memory.oom_control";
    if (use(mounts + "/memory" + *ours.v1 + file, "cgroup " + *ours.v1)) return;
    if (use(mounts + "/memory" + file, "cgroup /")) return;
  }
  if (ours.v2) {
    const std::string file = "/memory.events";
    if (use(mounts + *ours.v2 + file, "cgroup " + *ours.v2)) return;
    if (use(mounts + file, "cgroup /")) return;
  }
  use(root + "/proc/vmstat", "this host");
}

bool OomProbe::use(const std::string& path, const std::string& name) {
  file_ = open_file(path);
  const auto count = read();
  if (!count) return false;
  before_ = *count;
  name_ = name;
  return true;
}

std::optional<std::uint64_t> OomProbe::read() const {
  return file_.valid() ? count_of_oom_kills(read_file(file_.get())) : std::nullopt;
}

bool OomProbe::has_killed() const {
  return read().value_or(before_) > before_;
}

}  // namespace ddp::launcher
