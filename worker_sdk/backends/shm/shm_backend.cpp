#include "worker_sdk/backends/shm/shm_backend.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker_sdk/core/reduce.h"

namespace ddp::sdk::shm {
namespace {

// Up to here one exchange in which every rank reduces everything is quicker than two in which each
// reduces its part.
constexpr std::size_t kAtOnce = 8U << 10;

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

ShmBackend::ShmBackend(SharedGroup group, Place place, bool may_spin)
    : rounds_(std::move(group), std::move(place), may_spin) {}

void ShmBackend::run(const Call& call, std::chrono::milliseconds timeout) {
  rounds_.begin(fingerprint_of(call), timeout);
  switch (call.kind) {
    case CallKind::barrier:
      return barrier();
    case CallKind::broadcast:
      return broadcast(call);
    case CallKind::all_reduce:
      return call.count * size_of(call.type) <= kAtOnce ? reduce_at_once(call)
                                                        : reduce_in_pieces(call);
  }
}

void ShmBackend::barrier() {
  const std::uint64_t round = rounds_.next_round();
  rounds_.post(round);
  for (int peer = 0; peer < rounds_.size(); ++peer) {
    if (peer != rounds_.position()) rounds_.await_posted(peer, round);
  }
}

void ShmBackend::broadcast(const Call& call) {
  const std::size_t bytes = call.count * size_of(call.type);
  auto* data = static_cast<std::byte*>(call.data);
  const bool is_root = call.root == rounds_.position();
  std::size_t done = 0;
  do {
    const std::size_t piece = std::min(bytes - done, rounds_.chunk());
    const std::uint64_t round = rounds_.next_round();
    if (is_root) copy_bytes(rounds_.input(call.root, round), data + done, piece);
    rounds_.post(round);
    for (int peer = 0; peer < rounds_.size(); ++peer) {
      if (peer != rounds_.position()) rounds_.await_posted(peer, round);
    }
    if (!is_root) copy_bytes(data + done, rounds_.input(call.root, round), piece);
    done += piece;
  } while (done < bytes);
}

void ShmBackend::reduce_at_once(const Call& call) {
  const std::uint64_t round = rounds_.next_round();
  const int self = rounds_.position();
  copy_bytes(rounds_.input(self, round), call.data, call.count * size_of(call.type));
  rounds_.post(round);
  std::vector<const void*> inputs(static_cast<std::size_t>(rounds_.size()));
  for (int peer = 0; peer < rounds_.size(); ++peer) {
    if (peer != self) rounds_.await_posted(peer, round);
    inputs[static_cast<std::size_t>(peer)] = peer == self ? call.data : rounds_.input(peer, round);
  }
  Reduction job;
  job.inputs = inputs.data();
  job.ranks = inputs.size();
  job.count = call.count;
  job.output = call.data;
  find_reduction(call.type, call.op)(job);
}

// Each rank reduces one slice of every piece: reads its own straight from the caller's array,
// writes the result there and to the shared output. The others' slices of the result are fetched
// one piece later, while they are busy with the next.
void ShmBackend::reduce_in_pieces(const Call& call) {
  const std::size_t size = size_of(call.type);
  const std::size_t most = rounds_.chunk() / size;
  const int self = rounds_.position();
  const ReduceFunction reduce = find_reduction(call.type, call.op);
  std::vector<const void*> inputs(static_cast<std::size_t>(rounds_.size()));

  const auto fetch = [&](std::byte* piece, std::size_t count, std::uint64_t round) {
    for (int step = 1; step < rounds_.size(); ++step) {
      const int peer = (self + step) % rounds_.size();
      const Slice slice = slice_of(count, peer, rounds_.size(), size);
      rounds_.await_reduced(peer, round);
      copy_bytes(piece + slice.begin * size, rounds_.output(round) + slice.begin * size,
                 (slice.end - slice.begin) * size);
    }
  };

  std::byte* last_piece = nullptr;
  std::size_t last_count = 0;
  std::uint64_t last_round = 0;
  for (std::size_t done = 0; done < call.count; done += last_count) {
    const std::size_t count = std::min(call.count - done, most);
    std::byte* piece = static_cast<std::byte*>(call.data) + done * size;
    const std::uint64_t round = rounds_.next_round();
    const Slice mine = slice_of(count, self, rounds_.size(), size);
    std::byte* staged = rounds_.input(self, round);
    copy_bytes(staged, piece, mine.begin * size);
    copy_bytes(staged + mine.end * size, piece + mine.end * size, (count - mine.end) * size);
    rounds_.post(round);
    if (last_piece != nullptr) fetch(last_piece, last_count, last_round);

    for (int peer = 0; peer < rounds_.size(); ++peer) {
      if (peer != self) rounds_.await_posted(peer, round);
      inputs[static_cast<std::size_t>(peer)] =
          (peer == self ? piece : rounds_.input(peer, round)) + mine.begin * size;
    }
    Reduction job;
    job.inputs = inputs.data();
    job.ranks = inputs.size();
    job.count = mine.end - mine.begin;
    job.output = piece + mine.begin * size;
    job.second_output = rounds_.output(round) + mine.begin * size;
    reduce(job);
    rounds_.post_reduced(round);
    last_piece = piece;
    last_count = count;
    last_round = round;
  }
  fetch(last_piece, last_count, last_round);
}

}  // namespace ddp::sdk::shm
