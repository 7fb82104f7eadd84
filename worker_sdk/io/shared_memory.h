// Memory that processes of one host share: memfds, opened by others through /proc, and their
// mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker_sdk/io/unique_fd.h"

namespace ddp::sdk {

// A mapping of a whole memfd, read and write. Movable; unmaps in the end.
class Mapping {
 public:
  Mapping() = default;
  // Throws Unavailable.
  Mapping(const UniqueFd& fd, std::size_t size) : Mapping(fd.get(), size) {}
  Mapping(int fd, std::size_t size);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Zeros. Nobody can shrink it, so no mapping of it can ever fault. Throws Unavailable.
[[nodiscard]] UniqueFd make_shared_memory(const char* name, std::size_t size);

// This process as /proc calls it. That is another number than getpid()'s where /proc is that of an
// outer PID namespace.
[[nodiscard]] std::int64_t number_in_proc();

// The descriptor `fd` of the process that /proc calls `pid`, opened anew: works for processes of
// the same user that see the same /proc. `size` is what it must have. Throws Unavailable with the
// reason.
[[nodiscard]] UniqueFd open_shared_memory_of(std::int64_t pid, int fd, std::size_t size);

// Random, 32 hexadecimal digits.
[[nodiscard]] std::string make_token();

// Tells a process from its forked children: in a child it reads as forked at once, at the price of
// one load.
class ForkGuard {
 public:
  ForkGuard();  // throws Unavailable
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  [[nodiscard]] bool forked() const { return *page_ == 0; }
  // Throws InvalidUse.
  void check() const;

 private:
  volatile unsigned char* page_ = nullptr;
};

}  // namespace ddp::sdk
