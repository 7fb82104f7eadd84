// One group of ranks on Gloo over TCP: set-up through the store, checked collectives, abort, and
// what a loss means.
#pragma once

#include <gloo/rendezvous/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker_sdk/backends/gloo/agreement.h"
#include "worker_sdk/backends/gloo/mesh_sockets.h"
#include "worker_sdk/backends/seam.h"

namespace ddp::backends {

// Not thread-safe but for `abort`. Every failure but DDP_MISMATCH and DDP_INVALID_USE ends the
// group: the mesh is dropped at once, so that ranks which wait for this one learn of it, and later
// calls repeat the failure.
//
// all_reduce gives every rank the same bits, and the same bits each time for the same inputs: the
// elements are reduced in rank order, ((x0 + x1) + x2) …; 16-bit floats are rounded after each
// step.
class GlooGroup {
 public:
  explicit GlooGroup(const ddp_group_options_v1& options);
  ~GlooGroup();
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  void all_reduce(const ddp_call_v1& call);
  void broadcast(const ddp_call_v1& call);
  void barrier(const ddp_call_v1& call);
  [[nodiscard]] ddp_status poll() const { return DDP_OK; }  // Nothing is ever left running.
  void abort();                                             // From any thread.

 private:
  void connect(const std::string& local_address, const Deadline& deadline);
  void collect_sockets(const class GlooStore& store);
  void agree(const sdk::Fingerprint& fingerprint, const Deadline& deadline);
  template <class Body>
  void collective(sdk::Call call, const Deadline& deadline, Body&& body);

  void refuse_if_broken() const;
  [[nodiscard]] Failure break_mesh(const std::string& during, const Deadline& deadline,
                                   const char* gloo_text);
  void drop_mesh();
  [[nodiscard]] Deadline deadline_of(const ddp_call_v1& call) const;
  [[nodiscard]] std::string lost_rank_text(const std::string& gloo_text) const;

  const int rank_;
  const int world_size_;
  const int64_t timeout_ms_;
  const ddp_store_v1* store_;
  uint64_t sequence_ = 0;

  std::shared_ptr<gloo::rendezvous::Context> context_;
  Agreement outgoing_;
  Agreement incoming_;
  std::unique_ptr<gloo::transport::UnboundBuffer> outgoing_buffer_;
  std::unique_ptr<gloo::transport::UnboundBuffer> incoming_buffer_;
  std::vector<std::string> peer_texts_;  // By rank, as Gloo writes a peer in its messages.
  int waiting_for_ = -1;

  MeshSockets sockets_;
  std::atomic<bool> aborted_{false};
  std::optional<Failure> broken_;
};

}  // namespace ddp::backends
