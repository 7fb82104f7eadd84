#include "launcher/io/shared_page.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <system_error>

namespace ddp::launcher {

using rendezvous::ControlPage;
using rendezvous::PoisonState;

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void copy_text(std::span<char> to, const std::string& from) {
  const std::size_t length = std::min(from.size(), to.size() - 1);
  std::memcpy(to.data(), from.data(), length);
  to[length] = '\0';
}

void ring(std::atomic<std::uint32_t>& doorbell) {
  doorbell.fetch_add(1, std::memory_order_release);
  // Not FUTEX_PRIVATE: the sleepers are other processes.
  ::syscall(SYS_futex, &doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

SharedPage::SharedPage(const rendezvous::Placement& placement, std::uint32_t local_world_size)
    : fd_(::memfd_create("ddp-control", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (!fd_.valid() || ::ftruncate(fd_.get(), rendezvous::kControlPageSize) != 0) {
    fail("cannot make the workers' control page (memfd_create)");
  }
  // A worker that shrank it would kill every other one with SIGBUS.
  ::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* const memory = ::mmap(nullptr, rendezvous::kControlPageSize, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) fail("cannot map the workers' control page");
  page_ = ::new (memory) ControlPage{};
  page_->magic = rendezvous::kControlPageMagic;
  page_->version = rendezvous::kControlPageVersion;
  page_->size = rendezvous::kControlPageSize;
  page_->round_number = placement.round.number;
  page_->round_nonce = placement.round.nonce;
  page_->world_size = static_cast<std::uint32_t>(placement.world_size);
  page_->local_world_size = local_world_size;
  page_->first_rank = static_cast<std::uint32_t>(placement.first_rank.value);
}

SharedPage::~SharedPage() {
  ::munmap(page_, rendezvous::kControlPageSize);
}

void SharedPage::poison(const rendezvous::Failure& failure) {
  auto expected = static_cast<std::uint32_t>(PoisonState::alive);
  if (!page_->poison.compare_exchange_strong(expected,
                                             static_cast<std::uint32_t>(PoisonState::writing))) {
    return;
  }
  page_->dead_rank = failure.rank;
  page_->dead_pid = static_cast<std::int32_t>(failure.pid);
  page_->exit_code = failure.exit_code;
  page_->dead_signal = failure.signal;
  copy_text(page_->host, failure.host);
  copy_text(page_->reason, failure.message);
  page_->poison.store(static_cast<std::uint32_t>(PoisonState::poisoned), std::memory_order_release);
  const std::uint32_t sleepers =
      std::min(page_->local_world_size, rendezvous::kControlPageMaxWorkers);
  for (std::uint32_t i = 0; i < sleepers; ++i) ring(page_->doorbell[i]);
}

}  // namespace ddp::launcher
