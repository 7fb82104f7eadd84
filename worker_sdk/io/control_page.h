// A rank's view of its host's control page (PROTOCOL.md): who has died, and the bell on which a
// waiting rank sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/core/control_page.h"
#include "rendezvous/core/membership.h"
#include "worker_sdk/core/member.h"
#include "worker_sdk/io/shared_memory.h"

namespace ddp::sdk {

class ControlPageView {
 public:
  // The page that DDP_SHM_FD names, mapped, so that closing that descriptor later does no harm.
  // Throws Unavailable if it is no page of this round for this rank.
  static ControlPageView of_agent(int fd, const std::optional<rendezvous::RoundId>& round, int rank,
                                  int world_size);
  // A page made by the lowest local rank because there is no agent's. `fd` is kept by the caller
  // until the others have opened it.
  static ControlPageView make(UniqueFd& fd, int world_size, int local_world_size, int first_rank);
  static ControlPageView open_of(std::int64_t pid, int fd);

  // "<device>:<inode>", the same in every process that has this page.
  [[nodiscard]] const std::string& identity() const { return identity_; }
  [[nodiscard]] bool is_agents() const { return is_agents_; }
  [[nodiscard]] int first_rank() const { return static_cast<int>(page().first_rank); }
  [[nodiscard]] int local_world_size() const { return static_cast<int>(page().local_world_size); }

  [[nodiscard]] bool poisoned() const { return page().poison.load(std::memory_order_acquire) != 0; }
  // Who has died. Waits a little for a writer that is in the middle of it.
  [[nodiscard]] Death death() const;
  // The first death wins; then everybody is woken.
  void poison(int rank, std::int64_t pid, const std::string& host, const std::string& reason);

  // Sleeping and waking. `bell` is a rank's position among the local ranks.
  [[nodiscard]] std::uint32_t read_bell(int bell) const;
  // Returns when the bell has rung since it was read as `seen`, or after `most`, or for no reason.
  void sleep(int bell, std::uint32_t seen, std::chrono::milliseconds most) const;
  void ring(int bell) const;

 private:
  ControlPageView(Mapping mapping, std::string identity, bool is_agents);
  [[nodiscard]] rendezvous::ControlPage& page() const;

  Mapping mapping_;
  std::string identity_;
  bool is_agents_ = false;
};

}  // namespace ddp::sdk
