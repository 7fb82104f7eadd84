#include "worker_sdk/io/control_page.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include <ddp/error.hpp>

namespace ddp::sdk {

using rendezvous::ControlPage;
using rendezvous::PoisonState;

namespace {

std::string identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {};
  return std::to_string(status.st_dev) + ':' + std::to_string(status.st_ino);
}

void copy_text(char* to, std::size_t room, const std::string& from) {
  const std::size_t length = std::min(room - 1, from.size());
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

std::string read_text(const char* from, std::size_t room) {
  return std::string(from, ::strnlen(from, room));
}

std::string why_not_ours(const ControlPage& page, const std::optional<rendezvous::RoundId>& round,
                         int rank, int world_size) {
  if (page.magic != rendezvous::kControlPageMagic) return "it is not a control page";
  if (page.version != rendezvous::kControlPageVersion) {
    return "it has version " + std::to_string(page.version) + ", this library knows version " +
           std::to_string(rendezvous::kControlPageVersion);
  }
  if (round && (page.round_number != round->number || page.round_nonce != round->nonce)) {
    return "it belongs to another round";
  }
  const auto first = static_cast<std::int64_t>(page.first_rank);
  const auto local = static_cast<std::int64_t>(page.local_world_size);
  if (static_cast<std::int64_t>(page.world_size) != world_size || rank < first ||
      rank >= first + local || local > rendezvous::kControlPageMaxWorkers) {
    return "it is for other ranks";
  }
  return {};
}

}  // namespace

ControlPageView::ControlPageView(Mapping mapping, std::string identity, bool is_agents)
    : mapping_(std::move(mapping)), identity_(std::move(identity)), is_agents_(is_agents) {}

ControlPage& ControlPageView::page() const {
  return *reinterpret_cast<ControlPage*>(mapping_.data());
}

ControlPageView ControlPageView::of_agent(int fd, const std::optional<rendezvous::RoundId>& round,
                                          int rank, int world_size) {
  const std::string prefix = "descriptor " + std::to_string(fd) + " (DDP_SHM_FD): ";
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw Unavailable(prefix + "it is closed");
  if (!S_ISREG(status.st_mode) ||
      static_cast<std::size_t>(status.st_size) < rendezvous::kControlPageSize) {
    throw Unavailable(prefix + "it is not a control page");
  }
  ControlPageView view(Mapping(fd, rendezvous::kControlPageSize), identity_of(fd), true);
  const std::string reason = why_not_ours(view.page(), round, rank, world_size);
  if (!reason.empty()) throw Unavailable(prefix + reason);
  return view;
}

ControlPageView ControlPageView::make(UniqueFd& fd, int world_size, int local_world_size,
                                      int first_rank) {
  fd = make_shared_memory("ddp-control", rendezvous::kControlPageSize);
  ControlPageView view(Mapping(fd, rendezvous::kControlPageSize), identity_of(fd.get()), false);
  ControlPage& page = view.page();
  page.version = rendezvous::kControlPageVersion;
  page.size = rendezvous::kControlPageSize;
  page.world_size = static_cast<std::uint32_t>(world_size);
  page.local_world_size = static_cast<std::uint32_t>(local_world_size);
  page.first_rank = static_cast<std::uint32_t>(first_rank);
  page.magic = rendezvous::kControlPageMagic;
  return view;
}

ControlPageView ControlPageView::open_of(std::int64_t pid, int fd) {
  const UniqueFd opened = open_shared_memory_of(pid, fd, rendezvous::kControlPageSize);
  ControlPageView view(Mapping(opened, rendezvous::kControlPageSize), identity_of(opened.get()),
                       false);
  const ControlPage& page = view.page();
  if (page.magic != rendezvous::kControlPageMagic ||
      page.version != rendezvous::kControlPageVersion ||
      page.local_world_size > rendezvous::kControlPageMaxWorkers) {
    throw Unavailable("what process " + std::to_string(pid) +
                      " announced is no control page that this library knows");
  }
  return view;
}

Death ControlPageView::death() const {
  const ControlPage& page = this->page();
  // The writer may itself be killed between its two stores: don't wait for it for ever.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (page.poison.load(std::memory_order_acquire) ==
        static_cast<std::uint32_t>(PoisonState::poisoned)) {
      Death death;
      death.rank = page.dead_rank;
      death.host = read_text(page.host, sizeof page.host);
      death.reason = read_text(page.reason, sizeof page.reason);
      return death;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Death{-1, {}, "and whoever was about to say which has ended too"};
}

void ControlPageView::poison(int rank, std::int64_t pid, const std::string& host,
                             const std::string& reason) {
  ControlPage& page = this->page();
  auto expected = static_cast<std::uint32_t>(PoisonState::alive);
  if (!page.poison.compare_exchange_strong(expected,
                                           static_cast<std::uint32_t>(PoisonState::writing))) {
    return;
  }
  page.dead_rank = rank;
  page.dead_pid = static_cast<std::int32_t>(pid);
  page.exit_code = -1;
  page.dead_signal = 0;
  copy_text(page.host, sizeof page.host, host);
  copy_text(page.reason, sizeof page.reason, reason);
  page.poison.store(static_cast<std::uint32_t>(PoisonState::poisoned), std::memory_order_release);
  for (int bell = 0; bell < local_world_size(); ++bell) ring(bell);
}

std::uint32_t ControlPageView::read_bell(int bell) const {
  return page().doorbell[bell].load(std::memory_order_seq_cst);
}

void ControlPageView::sleep(int bell, std::uint32_t seen, std::chrono::milliseconds most) const {
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(most.count() / 1000);
  limit.tv_nsec = static_cast<long>(most.count() % 1000) * 1'000'000;
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&page().doorbell[bell]), FUTEX_WAIT, seen,
            &limit, nullptr, 0);
}

void ControlPageView::ring(int bell) const {
  page().doorbell[bell].fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&page().doorbell[bell]), FUTEX_WAKE,
            INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ddp::sdk
