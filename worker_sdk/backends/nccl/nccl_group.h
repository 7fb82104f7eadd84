// One group of ranks on NCCL: a non-blocking communicator that is polled, so that nothing waits
// without an end.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "worker_sdk/backends/nccl/cuda_resources.h"
#include "worker_sdk/backends/nccl/libraries.h"
#include "worker_sdk/backends/seam.h"

namespace ddp::backends {

// Not thread-safe but for `abort`. No thread is inside NCCL while another aborts: `mutex_` guards
// every call on the communicator, and none of them waits. A call with a stream is enqueued there
// and returns; without one it runs on the group's own stream and returns when the result is there.
// Every failure but DDP_INVALID_USE aborts the communicator; later calls repeat the failure. A
// rank's death may show up only as a timeout.
class NcclGroup {
 public:
  NcclGroup(const ddp_group_options_v1& options, const Libraries& libraries);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void all_reduce(const ddp_call_v1& call);
  void broadcast(const ddp_call_v1& call);
  void barrier(const ddp_call_v1& call);
  [[nodiscard]] ddp_status poll();
  void abort();  // From any thread.

 private:
  void init(const ddp_group_options_v1& options);
  template <class Call>
  [[nodiscard]] nccl_api::Result with_comm(Call&& call);
  template <class Call>
  void run(const ddp_call_v1& call, const std::string& what, Call&& enqueue);
  void settle(nccl_api::Result result, const std::string& what, const Deadline& deadline);
  void await_own_stream(const std::string& what, const Deadline& deadline);
  void check_memory(const void* pointer) const;
  void refuse_if_broken() const;
  [[nodiscard]] Failure failure_of(nccl_api::Result result, const std::string& what);
  [[nodiscard]] Failure timed_out(const std::string& what, const Deadline& deadline);
  [[nodiscard]] Failure give_up(Failure failure);
  void abort_comm();
  void finalize();

  const Libraries& libraries_;
  const int world_size_;
  const int device_;
  const int64_t timeout_ms_;
  PrimaryContext context_;
  std::optional<OwnStream> stream_;
  std::optional<DeviceCell> cell_;

  std::mutex mutex_;
  nccl_api::Comm comm_ = nullptr;  // Null: aborted or never made.
  std::atomic<bool> aborted_{false};
  std::optional<Failure> broken_;
};

}  // namespace ddp::backends
