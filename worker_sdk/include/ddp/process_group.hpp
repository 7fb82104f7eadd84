// A group of processes that train together: who is in it, and what they do together.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <ddp/export.hpp>
#include <ddp/store.hpp>
#include <ddp/types.hpp>

namespace ddp {
namespace sdk {
class GroupState;
}

inline namespace v1 {

// What init_process_group is told. A program that says nothing gets everything from the
// environment.
struct InitOptions {
  // "auto", "shm", "gloo" or "nccl"; empty: the variable DDP_BACKEND, or "auto". Must be the same
  // on every rank.
  std::string backend;
  // For the start and for each later call; 0: the variable DDP_TIMEOUT (seconds), or 30 minutes.
  // At most a year, longer ones count as that; a negative one is InvalidUse.
  std::chrono::milliseconds timeout{0};
};

// All processes of the job. Every rank must make the same collective calls in the same order, with
// the same types, counts and roots; ranks that don't get Mismatch, which names both. (On GPU memory
// nobody compares: such ranks get Timeout, or wrong numbers.)
//
// Thread safety: any thread may call; calls are carried out one after the other. As all ranks must
// call in the same order, a program that calls from several threads has to order them itself.
//
// Memory: std::vector and plain pointers into this process's own memory. Where the group's
// backend() is "nccl", a pointer to GPU memory is recognised; it must point to the GPU whose number
// is local_rank(), on every rank. The work begins when all that the program has put on that GPU's
// default stream is done, and the call returns when the result is there (those of torch.distributed
// return earlier). A stream made with cudaStreamNonBlocking is the program's to wait for. Host
// memory goes over host_backend().
//
// Errors: collectives throw Timeout, PeerLost, Mismatch, InvalidUse or Unavailable (<ddp/error.hpp>
// says what to do about each). After fork() the child must not use the parent's group: InvalidUse.
//
// Destroying the group tells the others that this rank has left: what they have finished stays
// finished, a rank that still waits for this one gets PeerLost.
class DDP_API ProcessGroup {
 public:
  ProcessGroup(ProcessGroup&& other) noexcept;
  ProcessGroup& operator=(ProcessGroup&& other) noexcept;
  ~ProcessGroup();

  int rank() const;              // of this process in the group, from 0
  int world_size() const;        // how many ranks there are
  int local_rank() const;        // of this process on its host, from 0
  int local_world_size() const;  // how many ranks run on this host
  bool is_main() const { return rank() == 0; }

  // What carries the bytes: "nccl", "shm", "gloo", or "alone" where there is nobody to send to.
  std::string backend() const;
  // What carries host memory: the same, except in an "nccl" group ("shm", "gloo" or "alone").
  std::string host_backend() const;

  // Replaces every element by the reduction of that element over all ranks, in place, on all ranks.
  // `count` is in elements, and may be 0. Host memory: bit for bit the same on every rank.
  template <typename T>
  void all_reduce(T* data, std::size_t count, ReduceOp op = ReduceOp::sum) {
    all_reduce_bytes(data, count, detail::data_type_of<T>(), op);
  }
  template <typename T, typename Allocator>
  void all_reduce(std::vector<T, Allocator>& data, ReduceOp op = ReduceOp::sum) {
    static_assert(!std::is_same_v<T, bool>,
                  "ddp: std::vector<bool> has no array of bool inside; use std::vector<uint8_t>");
    all_reduce(data.data(), data.size(), op);
  }

  // Copies the elements of rank `root` over those of all others. Every rank must have room for as
  // many as the root has: a std::vector is not resized.
  template <typename T>
  void broadcast(T* data, std::size_t count, int root) {
    broadcast_bytes(data, count, detail::data_type_of<T>(), root);
  }
  template <typename T, typename Allocator>
  void broadcast(std::vector<T, Allocator>& data, int root) {
    static_assert(!std::is_same_v<T, bool>,
                  "ddp: std::vector<bool> has no array of bool inside; use std::vector<uint8_t>");
    broadcast(data.data(), data.size(), root);
  }

  // Returns when every rank has called it.
  void barrier();

  // The round's key-value store. Alone: one inside this process.
  Store& store();

  // The same with the type as a value, for programs that know it only at run time.
  void all_reduce_bytes(void* data, std::size_t count, DataType type, ReduceOp op);
  void broadcast_bytes(void* data, std::size_t count, DataType type, int root);

 private:
  friend DDP_API ProcessGroup init_process_group(const InitOptions& options);
  explicit ProcessGroup(std::unique_ptr<sdk::GroupState> state);
  sdk::GroupState& state() const;

  std::unique_ptr<sdk::GroupState> state_;
};

// Joins the job that this process was started for, and returns when all ranks have come.
//
// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (and LOCAL_RANK, LOCAL_WORLD_SIZE, DDP_*
// where a launcher has set them). With none of them, and no other launcher's, the process is alone:
// world size 1, no network. Collective: a rank that calls it again makes a new group, and so must
// all others.
//
// Throws InvalidUse if the set is incomplete or makes no sense, Unavailable if what was asked for
// cannot be had (the message says why), Timeout naming the ranks that did not come, PeerLost if one
// died meanwhile, Mismatch if ranks ask for different backends.
//
// Thread safety: one call at a time in a process.
DDP_API ProcessGroup init_process_group(const InitOptions& options = {});

}  // namespace v1
}  // namespace ddp
