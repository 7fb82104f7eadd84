// Whether the kernel has killed something for want of memory: its counter for our cgroup, or the
// host's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/io/unique_fd.h"

namespace ddp::launcher {

// Counts from when it is made. Takes about twenty microseconds then, and two after that.
class OomProbe {
 public:
  // `root` is where the kernel's files are, for tests; empty: where they are.
  explicit OomProbe(const std::string& root = {});

  // As far as can be read.
  [[nodiscard]] bool has_killed() const;
  // "cgroup /user/1" or "this host"; empty if no counter can be read.
  [[nodiscard]] const std::string& counter() const { return name_; }

 private:
  bool use(const std::string& path, const std::string& name);
  [[nodiscard]] std::optional<std::uint64_t> read() const;

  UniqueFd file_;
  std::string name_;
  std::uint64_t before_ = 0;
};

}  // namespace ddp::launcher
