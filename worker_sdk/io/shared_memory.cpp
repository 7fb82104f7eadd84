#include "worker_sdk/io/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <ddp/error.hpp>

namespace ddp::sdk {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Unavailable(what + ": " + std::strerror(errno));
}

}  // namespace

Mapping::Mapping(int fd, std::size_t size) : size_(size) {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) fail("cannot map " + std::to_string(size) + " bytes of shared memory");
  data_ = static_cast<std::byte*>(address);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

UniqueFd make_shared_memory(const char* name, std::size_t size) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) fail("cannot make shared memory (memfd_create)");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    fail("cannot make " + std::to_string(size) + " bytes of shared memory");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail("cannot fix the size of shared memory");
  }
  return fd;
}

std::int64_t number_in_proc() {
  std::array<char, 32> target{};
  const ssize_t length = ::readlink("/proc/self", target.data(), target.size() - 1);
  const std::int64_t number = length > 0 ? std::strtoll(target.data(), nullptr, 10) : 0;
  return number > 0 ? number : ::getpid();
}

UniqueFd open_shared_memory_of(std::int64_t pid, int fd, std::size_t size) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!opened.valid()) fail("cannot open the shared memory " + path);
  const int seals = ::fcntl(opened.get(), F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(opened.get(), &status) != 0 ||
      static_cast<std::size_t>(status.st_size) != size) {
    throw Unavailable(path +
                      " is not the shared memory that was announced: is that process in "
                      "another PID namespace?");
  }
  return opened;
}

std::string make_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    fail("cannot draw random bytes");
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += "0123456789abcdef"[byte >> 4];
    token += "0123456789abcdef"[byte & 15];
  }
  return token;
}

namespace {

constexpr std::size_t kGuardSize = 4096;

}  // namespace

ForkGuard::ForkGuard() {
  void* address =
      ::mmap(nullptr, kGuardSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) fail("cannot map a page");
  if (::madvise(address, kGuardSize, MADV_WIPEONFORK) != 0) {
    const int reason = errno;
    ::munmap(address, kGuardSize);
    errno = reason;
    fail("this kernel cannot tell forked children apart (MADV_WIPEONFORK)");
  }
  page_ = static_cast<volatile unsigned char*>(address);
  *page_ = 1;
}

ForkGuard::~ForkGuard() {
  ::munmap(const_cast<unsigned char*>(page_), kGuardSize);
}

void ForkGuard::check() const {
  if (forked()) {
    throw InvalidUse(
        "this process was forked from the one that made the group: a child must not "
        "use it; exec a new program, or fork before init_process_group");
  }
}

}  // namespace ddp::sdk
