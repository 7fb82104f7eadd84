// How the ranks of a shared-memory group wait for each other: numbered rounds, no lock, every wait
// with an end.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/backends/shm/layout.h"
#include "worker_sdk/backends/shm/meet.h"
#include "worker_sdk/backends/shm/peer_watch.h"
#include "worker_sdk/io/deadline.h"
#include "worker_sdk/io/shared_memory.h"

namespace ddp::sdk::shm {

// One collective is one round or several; all ranks number them alike. In each round a rank lays
// its fingerprint (and input) ready and posts the number; where it has reduced a slice of the
// result it posts that too. A rank that is killed between any two instructions leaves at worst a
// number that does not grow: the others find out by the control page or by its pidfd.
//
// Reuse: there are two buffers of each kind, used in turn. A rank begins round n only after
// everybody has posted round n-1, and posts a round only after it has read all it needs of the one
// before the last; so what is overwritten in round n is what nobody reads any more.
class Rounds {
 public:
  Rounds(SharedGroup group, Place place, bool may_spin);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  // Tells the others that this rank has left, unless this is a forked child.
  ~Rounds();

  [[nodiscard]] int size() const { return static_cast<int>(place_.peers.size()); }
  [[nodiscard]] int position() const { return place_.position; }
  [[nodiscard]] std::size_t chunk() const { return layout_.chunk(); }
  [[nodiscard]] std::byte* input(int position, std::uint64_t round) const {
    return group_.memory.data() + layout_.input(position, round);
  }
  [[nodiscard]] std::byte* output(std::uint64_t round) const {
    return group_.memory.data() + layout_.output(round);
  }

  // A collective begins. Throws PeerLost if somebody has died already.
  void begin(const Fingerprint& print, Milliseconds timeout);
  // A new round of it. Input may be written now, until it is posted.
  [[nodiscard]] std::uint64_t next_round() { return ++round_; }
  void post(std::uint64_t round);
  void post_reduced(std::uint64_t round);
  // Throw Timeout, PeerLost, Mismatch; the others are told that this rank has given up.
  void await_posted(int position, std::uint64_t round);
  void await_reduced(int position, std::uint64_t round);

 private:
  enum class Stage : std::uint8_t { posted, reduced };

  [[nodiscard]] RankSlot& slot(int position) const {
    return *reinterpret_cast<RankSlot*>(group_.memory.data() + layout_.slot(position));
  }
  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(group_.memory.data()); }
  [[nodiscard]] bool reached(Stage stage, int position, std::uint64_t round) const {
    const RankSlot& peer = slot(position);
    const auto& counter = stage == Stage::posted ? peer.posted : peer.reduced;
    return counter.load(std::memory_order_acquire) >= round;
  }
  void await(Stage stage, int position, std::uint64_t round);
  void sleep_until(Stage stage, int position, std::uint64_t round);
  void look_around(Stage stage, std::uint64_t round);
  void look_for_the_dead(Stage stage, std::uint64_t round);
  void wake_sleepers() const;

  [[noreturn]] void fail_by_poison();
  [[noreturn]] void fail_by_peer(int position);
  [[noreturn]] void fail_by_ended(int position);
  [[noreturn]] void fail_by_time(Stage stage, std::uint64_t round);
  [[noreturn]] void fail_by_mismatch(int position, const Fingerprint& theirs);
  void give_up(Cause cause, int culprit);
  [[nodiscard]] std::string name(int position) const;
  [[nodiscard]] std::string my_call() const;

  SharedGroup group_;
  Place place_;
  Layout layout_;
  ForkGuard guard_;
  PeerWatch watch_;
  int spins_;
  std::uint64_t round_ = 0;
  // Of the call that is being made.
  Fingerprint print_;
  Milliseconds timeout_{0};
  std::optional<Deadline> deadline_;  // from the first wait that did not end at once
  std::optional<std::chrono::steady_clock::time_point> looked_for_dead_;
  std::optional<std::chrono::steady_clock::time_point> saw_dead_;
};

}  // namespace ddp::sdk::shm
