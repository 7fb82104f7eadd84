#include "worker_sdk/backends/shm/rounds.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include <ddp/error.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ddp::sdk::shm {
namespace {

using std::chrono::steady_clock;

// Where each rank has a CPU it spins for about half a millisecond: shorter, and on a busy machine
// ranks that once slept wake each other ever after, at 50 µs a call. Where it has not, the peer
// needs this CPU, so it is offered a few times and then left.
constexpr int kSpins = 20'000;
constexpr int kYields = 50;
constexpr Milliseconds kSlice{100};
// An agent says more of a death than a pidfd does: leave it that long to say so.
constexpr Milliseconds kAgentGrace{1000};

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

std::vector<std::int64_t> pids_of(const Place& place) {
  std::vector<std::int64_t> pids;
  for (const Peer& peer : place.peers) pids.push_back(peer.pid);
  return pids;
}

// Seen by others as asleep for as long as it lives.
class Sleeper {
 public:
  Sleeper(RankSlot& slot, Header& header) : slot_(slot), header_(header) {
    slot_.sleeping.store(1, std::memory_order_relaxed);
    header_.sleepers.fetch_add(1, std::memory_order_seq_cst);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    header_.sleepers.fetch_sub(1, std::memory_order_relaxed);
    slot_.sleeping.store(0, std::memory_order_relaxed);
  }

 private:
  RankSlot& slot_;
  Header& header_;
};

}  // namespace

Rounds::Rounds(SharedGroup group, Place place, bool may_spin)
    : group_(std::move(group)),
      place_(std::move(place)),
      layout_(static_cast<int>(place_.peers.size()),
              reinterpret_cast<const Header*>(group_.memory.data())->chunk),
      spins_(may_spin ? kSpins : 0) {
  // Without an agent the pidfds are all there is, so they must be open before a first barrier
  // proves that the processes behind them are the right ones.
  if (!group_.page->is_agents()) watch_ = PeerWatch(pids_of(place_), position());
  slot(position())
      .state.store(static_cast<std::uint32_t>(RankState::active), std::memory_order_release);
}

Rounds::~Rounds() {
  if (guard_.forked()) return;
  auto& state = slot(position()).state;
  if (state.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(RankState::active)) {
    state.store(static_cast<std::uint32_t>(RankState::left), std::memory_order_seq_cst);
    wake_sleepers();
  }
}

void Rounds::begin(const Fingerprint& print, Milliseconds timeout) {
  print_ = print;
  timeout_ = timeout;
  deadline_.reset();
  looked_for_dead_.reset();
  saw_dead_.reset();
  if (group_.page->poisoned()) fail_by_poison();
}

void Rounds::post(std::uint64_t round) {
  RankSlot& mine = slot(position());
  mine.prints[round & 1] = print_;
  mine.posted.store(round, std::memory_order_seq_cst);
  wake_sleepers();
}

void Rounds::post_reduced(std::uint64_t round) {
  slot(position()).reduced.store(round, std::memory_order_seq_cst);
  wake_sleepers();
}

// Sequentially consistent on both sides: either the sleeper sees the number that was just stored,
// or this sees the sleeper.
void Rounds::wake_sleepers() const {
  if (header().sleepers.load(std::memory_order_seq_cst) == 0) return;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != position() && slot(peer).sleeping.load(std::memory_order_relaxed) != 0) {
      group_.page->ring(peer);
    }
  }
}

void Rounds::await_posted(int peer, std::uint64_t round) {
  await(Stage::posted, peer, round);
  const Fingerprint& theirs = slot(peer).prints[round & 1];
  if (!(theirs == print_)) fail_by_mismatch(peer, theirs);
}

void Rounds::await_reduced(int peer, std::uint64_t round) {
  await(Stage::reduced, peer, round);
}

void Rounds::await(Stage stage, int peer, std::uint64_t round) {
  if (reached(stage, peer, round)) return;
  for (int spin = 0; spin < spins_; ++spin) {
    pause_cpu();
    if (reached(stage, peer, round)) return;
  }
  for (int yield = 0; yield < kYields && spins_ == 0; ++yield) {
    ::sched_yield();
    if (reached(stage, peer, round)) return;
  }
  sleep_until(stage, peer, round);
}

void Rounds::sleep_until(Stage stage, int peer, std::uint64_t round) {
  if (!deadline_) deadline_.emplace(timeout_);
  const Sleeper sleeper(slot(position()), header());
  const ControlPageView& page = *group_.page;
  for (;;) {
    const std::uint32_t seen = page.read_bell(position());
    const auto& counter = stage == Stage::posted ? slot(peer).posted : slot(peer).reduced;
    if (counter.load(std::memory_order_seq_cst) >= round) return;
    look_around(stage, round);
    if (reached(stage, peer, round)) return;
    page.sleep(position(), seen, std::min(kSlice, deadline_->remaining()));
  }
}

void Rounds::look_around(Stage stage, std::uint64_t round) {
  if (group_.page->poisoned()) fail_by_poison();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == position() || reached(stage, peer, round)) continue;
    const auto state = static_cast<RankState>(slot(peer).state.load(std::memory_order_acquire));
    const bool gone = state == RankState::left || state == RankState::broken;
    // It may have done its part between the two looks, and then left.
    if (gone && !reached(stage, peer, round)) fail_by_peer(peer);
  }
  look_for_the_dead(stage, round);
  if (deadline_->passed()) fail_by_time(stage, round);
}

// Costs a system call, so only once in a while, and not in a wait that ends soon.
void Rounds::look_for_the_dead(Stage stage, std::uint64_t round) {
  const auto now = steady_clock::now();
  if (!looked_for_dead_) looked_for_dead_ = now;
  if (now - *looked_for_dead_ < kSlice / 2) return;
  looked_for_dead_ = now;
  if (watch_.empty()) watch_ = PeerWatch(pids_of(place_), position());
  const std::vector<bool> ended = watch_.ended();
  for (int peer = 0; peer < size(); ++peer) {
    if (!ended[static_cast<std::size_t>(peer)] || reached(stage, peer, round)) continue;
    if (!saw_dead_) saw_dead_ = now;
    if (group_.page->is_agents() && now - *saw_dead_ < kAgentGrace) return;
    fail_by_ended(peer);
  }
}

std::string Rounds::name(int peer) const {
  const Peer& who = place_.peers[static_cast<std::size_t>(peer)];
  return "rank " + std::to_string(who.rank) + " on " + who.host;
}

std::string Rounds::my_call() const {
  return describe(print_) + " on rank " +
         std::to_string(place_.peers[static_cast<std::size_t>(position())].rank);
}

// Everybody is woken, asleep or not: those who wait for this rank would wait in vain.
void Rounds::give_up(Cause cause, int culprit) {
  RankSlot& mine = slot(position());
  mine.cause = static_cast<std::uint32_t>(cause);
  mine.culprit = culprit;
  mine.state.store(static_cast<std::uint32_t>(RankState::broken), std::memory_order_seq_cst);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != position()) group_.page->ring(peer);
  }
}

void Rounds::fail_by_poison() {
  const Death death = group_.page->death();
  give_up(Cause::peer_lost, death.rank);
  throw PeerLost(death.rank, death.host,
                 describe(death) + ", so " + my_call() + " cannot be completed");
}

void Rounds::fail_by_peer(int peer) {
  const RankSlot& theirs = slot(peer);
  const auto state = static_cast<RankState>(theirs.state.load(std::memory_order_acquire));
  const Peer& who = place_.peers[static_cast<std::size_t>(peer)];
  const std::string end = ", so " + my_call() + " cannot be completed";
  if (state == RankState::left) {
    give_up(Cause::peer_lost, who.rank);
    throw PeerLost(who.rank, who.host,
                   name(peer) + " has left the group (its ProcessGroup was destroyed)" + end +
                       "; do all ranks make the same number of calls?");
  }
  const auto cause = static_cast<Cause>(theirs.cause);
  const int culprit = theirs.culprit;
  give_up(cause, culprit);
  if (cause == Cause::mismatch) {
    throw Mismatch(name(peer) + " found that the ranks called different collectives and gave up" +
                   end + "; its own message says which");
  }
  if (cause == Cause::timeout) {
    throw Timeout(name(peer) + " gave up waiting for rank " + std::to_string(culprit) + end);
  }
  std::string host;
  for (const Peer& candidate : place_.peers) {
    if (candidate.rank == culprit) host = candidate.host;
  }
  throw PeerLost(culprit, host,
                 name(peer) + " has lost rank " + std::to_string(culprit) + " and gave up" + end);
}

void Rounds::fail_by_ended(int peer) {
  const Peer& who = place_.peers[static_cast<std::size_t>(peer)];
  const std::string reason =
      "its process " + std::to_string(who.pid) + " ended without leaving the group";
  if (!group_.page->is_agents()) group_.page->poison(who.rank, who.pid, who.host, reason);
  give_up(Cause::peer_lost, who.rank);
  throw PeerLost(
      who.rank, who.host,
      name(peer) + " is lost (" + reason + "), so " + my_call() + " cannot be completed");
}

void Rounds::fail_by_time(Stage stage, std::uint64_t round) {
  std::string missing;
  int culprit = -1;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == position() || reached(stage, peer, round)) continue;
    if (culprit < 0) culprit = place_.peers[static_cast<std::size_t>(peer)].rank;
    missing += (missing.empty() ? "" : ", ") + name(peer) + " (process " +
               std::to_string(place_.peers[static_cast<std::size_t>(peer)].pid) + ")";
  }
  give_up(Cause::timeout, culprit);
  throw Timeout("after " + in_seconds(timeout_) + " " + my_call() + " still waits for " + missing +
                ", alive but not there: is it stuck, or much slower? DDP_TIMEOUT sets the limit");
}

void Rounds::fail_by_mismatch(int peer, const Fingerprint& theirs) {
  const int mine = place_.peers[static_cast<std::size_t>(position())].rank;
  const int other = place_.peers[static_cast<std::size_t>(peer)].rank;
  const Fingerprint copy = theirs;
  give_up(Cause::mismatch, other);
  throw Mismatch(mine < other ? describe_mismatch(mine, print_, other, copy)
                              : describe_mismatch(other, copy, mine, print_));
}

}  // namespace ddp::sdk::shm
