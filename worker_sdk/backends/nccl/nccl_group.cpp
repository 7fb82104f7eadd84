#include "worker_sdk/backends/nccl/nccl_group.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "worker_sdk/backends/nccl/nccl_types.h"
#include "worker_sdk/backends/seam_store.h"

namespace ddp::backends {
namespace {

constexpr const char* kIdKey = "nccl/id";
// The first byte of what rank 0 publishes: an id, or why there is none.
constexpr char kHasId = 'I';
constexpr char kHasError = 'E';
constexpr Milliseconds kFinalizeLimit{5000};

// Between two looks at NCCL: at first only the processor is given away, then a nap that costs no
// throughput.
class Patience {
 public:
  void wait() {
    if (++looks_ < 200) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  int looks_ = 0;
};

nccl_api::UniqueId make_id(const nccl_api::Api& nccl) {
  nccl_api::UniqueId id{};
  const nccl_api::Result result = nccl.ncclGetUniqueId(&id);
  if (result == nccl_api::kSuccess) return id;
  throw Failure(DDP_UNAVAILABLE, std::string("NCCL on rank 0 could not open its socket: ") +
                                     nccl.ncclGetLastError(nullptr) +
                                     " (NCCL_SOCKET_IFNAME chooses the interface)");
}

// Every id made leaves a thread and a socket behind until all ranks have come: only rank 0 makes
// one, and once.
nccl_api::UniqueId share_id(const ddp_group_options_v1& options, const nccl_api::Api& nccl,
                            const Deadline& deadline) {
  nccl_api::UniqueId id{};
  if (options.rank == 0) {
    std::string value(1, kHasId);
    try {
      id = make_id(nccl);
      value.append(id.internal, sizeof id.internal);
    } catch (const Failure& failure) {
      if (options.world_size > 1) {
        value = kHasError + std::string(failure.what());
        store_set(*options.store, kIdKey, value.data(), value.size());
      }
      throw;
    }
    if (options.world_size > 1) store_set(*options.store, kIdKey, value.data(), value.size());
    return id;
  }
  const std::vector<char> value = store_get(*options.store, kIdKey, deadline.remaining());
  if (value.size() == 1 + sizeof id.internal && value[0] == kHasId) {
    std::memcpy(id.internal, value.data() + 1, sizeof id.internal);
    return id;
  }
  if (!value.empty() && value[0] == kHasError) {
    throw Failure(DDP_UNAVAILABLE, std::string(value.begin() + 1, value.end()), 0);
  }
  throw Failure(DDP_UNAVAILABLE, "rank 0 published no NCCL id that this version can read", 0);
}

nccl_api::DataType require_type(const ddp_call_v1& call) {
  const auto type = nccl_type(type_of(call));
  if (type) return *type;
  throw Failure(DDP_INVALID_USE,
                std::string("NCCL has no element type ") + sdk::name_of(type_of(call)));
}

nccl_api::RedOp require_op(const ddp_call_v1& call) {
  const auto op = nccl_op(op_of(call), call.dtype == DDP_BOOL);
  if (op) return *op;
  throw Failure(DDP_INVALID_USE, std::string("NCCL has no reduction ") + sdk::name_of(op_of(call)) +
                                     " for " + sdk::name_of(type_of(call)));
}

std::string describe(const ddp_call_v1& call, sdk::CallKind kind) {
  std::string text = std::string(sdk::name_of(kind)) + "(";
  if (kind != sdk::CallKind::barrier) {
    text +=
        std::string(sdk::name_of(type_of(call))) + ", " + std::to_string(call.count) + " elements";
  }
  return text + ")";
}

}  // namespace

NcclGroup::NcclGroup(const ddp_group_options_v1& options, const Libraries& libraries)
    : libraries_(libraries),
      world_size_(options.world_size),
      device_(options.device),
      timeout_ms_(options.timeout_ms),
      context_(libraries.cuda, options.device) {
  const CurrentContext current(context_);
  try {
    stream_.emplace(libraries_.cuda);
    cell_.emplace(libraries_.cuda);
    init(options);
  } catch (const Failure&) {
    // Released here, while their context is current.
    cell_.reset();
    stream_.reset();
    throw;
  }
}

NcclGroup::~NcclGroup() {
  try {
    const CurrentContext current(context_);
    finalize();
    cell_.reset();
    stream_.reset();
  } catch (const std::exception&) {
    // The GPU is gone; there is nothing left to give back.
  }
}

void NcclGroup::init(const ddp_group_options_v1& options) {
  const Deadline deadline(effective_timeout(-1, timeout_ms_));
  const nccl_api::UniqueId id = share_id(options, libraries_.nccl, deadline);
  nccl_api::Config config;
  config.blocking = 0;
  const nccl_api::Result result =
      libraries_.nccl.ncclCommInitRankConfig(&comm_, world_size_, id, options.rank, &config);
  try {
    settle(result, "the set-up of an NCCL group of " + std::to_string(world_size_) + " ranks",
           deadline);
  } catch (const Failure&) {
    abort_comm();  // Also after DDP_INVALID_USE: there is no group without a communicator.
    throw;
  }
}

void NcclGroup::all_reduce(const ddp_call_v1& call) {
  check_call(call, world_size_);
  check_buffers(call);
  const nccl_api::DataType type = require_type(call);
  const nccl_api::RedOp op = require_op(call);
  const std::string what = describe(call, sdk::CallKind::all_reduce);
  const nccl_api::Api& nccl = libraries_.nccl;
  if (call.op != DDP_PREMUL_SUM) {
    run(call, what, [&](nccl_api::Comm comm, cuda_api::Stream stream) {
      return nccl.ncclAllReduce(call.input, call.output, call.count, type, op, comm, stream);
    });
    return;
  }
  if (call.dtype != DDP_FLOAT32 && call.dtype != DDP_FLOAT64) {
    throw Failure(DDP_INVALID_USE, std::string("premul_sum is for float32 and float64, not for ") +
                                       sdk::name_of(type_of(call)));
  }
  refuse_if_broken();
  double as_double = call.premul;
  float as_float = static_cast<float>(call.premul);
  void* factor = call.dtype == DDP_FLOAT32 ? static_cast<void*>(&as_float) : &as_double;
  nccl_api::RedOp scaled = 0;
  const CurrentContext current(context_);
  const Deadline deadline(effective_timeout(call.timeout_ms, timeout_ms_));
  settle(with_comm([&](nccl_api::Comm comm) {
           return nccl.ncclRedOpCreatePreMulSum(&scaled, factor, type,
                                                nccl_api::kScalarHostImmediate, comm);
         }),
         what, deadline);
  run(call, what, [&](nccl_api::Comm comm, cuda_api::Stream stream) {
    return nccl.ncclAllReduce(call.input, call.output, call.count, type, scaled, comm, stream);
  });
  settle(with_comm([&](nccl_api::Comm comm) { return nccl.ncclRedOpDestroy(scaled, comm); }), what,
         deadline);
}

void NcclGroup::broadcast(const ddp_call_v1& call) {
  check_call(call, world_size_);
  check_buffers(call);
  // Bytes: a broadcast needs no arithmetic, so every element type works.
  const size_t bytes = call.count * sdk::size_of(type_of(call));
  run(call, describe(call, sdk::CallKind::broadcast),
      [&](nccl_api::Comm comm, cuda_api::Stream stream) {
        return libraries_.nccl.ncclBroadcast(call.input, call.output, bytes, nccl_api::kUint8,
                                             call.root, comm, stream);
      });
}

void NcclGroup::barrier(const ddp_call_v1& call) {
  check_call(call, world_size_);
  ddp_call_v1 on_cell = call;
  on_cell.dtype = DDP_UINT8;
  on_cell.input = cell_->get();
  on_cell.output = cell_->get();
  on_cell.count = 1;
  run(on_cell, describe(call, sdk::CallKind::barrier),
      [&](nccl_api::Comm comm, cuda_api::Stream stream) {
        return libraries_.nccl.ncclAllReduce(on_cell.input, on_cell.output, 1, nccl_api::kUint8,
                                             nccl_api::kMax, comm, stream);
      });
}

ddp_status NcclGroup::poll() {
  refuse_if_broken();
  nccl_api::Result state = nccl_api::kSuccess;
  const nccl_api::Result asked = with_comm(
      [&](nccl_api::Comm comm) { return libraries_.nccl.ncclCommGetAsyncError(comm, &state); });
  if (asked != nccl_api::kSuccess) throw failure_of(asked, "asking NCCL for its state");
  if (state == nccl_api::kInProgress) return DDP_IN_PROGRESS;
  if (state != nccl_api::kSuccess) throw failure_of(state, "what was enqueued");
  return DDP_OK;
}

void NcclGroup::abort() {
  aborted_ = true;
  abort_comm();
}

template <class Call>
nccl_api::Result NcclGroup::with_comm(Call&& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) throw Failure(DDP_ABORTED, "this group was aborted");
  return call(comm_);
}

template <class Call>
void NcclGroup::run(const ddp_call_v1& call, const std::string& what, Call&& enqueue) {
  refuse_if_broken();
  if (call.count == 0) return;
  check_memory(call.input);
  if (call.output != call.input) check_memory(call.output);
  const CurrentContext current(context_);
  const Deadline deadline(effective_timeout(call.timeout_ms, timeout_ms_));
  const bool own = call.stream == nullptr;
  const cuda_api::Stream stream = own ? stream_->get() : static_cast<cuda_api::Stream>(call.stream);
  settle(with_comm([&](nccl_api::Comm comm) { return enqueue(comm, stream); }), what, deadline);
  if (own) await_own_stream(what, deadline);
}

// A non-blocking communicator answers "in progress" until the call has really been made.
void NcclGroup::settle(nccl_api::Result result, const std::string& what, const Deadline& deadline) {
  Patience patience;
  while (result == nccl_api::kInProgress) {
    if (deadline.passed()) throw timed_out(what, deadline);
    patience.wait();
    nccl_api::Result state = nccl_api::kSuccess;
    const nccl_api::Result asked = with_comm(
        [&](nccl_api::Comm comm) { return libraries_.nccl.ncclCommGetAsyncError(comm, &state); });
    result = asked == nccl_api::kSuccess ? state : asked;
  }
  if (result != nccl_api::kSuccess) throw failure_of(result, what);
}

void NcclGroup::await_own_stream(const std::string& what, const Deadline& deadline) {
  Patience patience;
  for (;;) {
    const cuda_api::Result state = libraries_.cuda.cuStreamQuery(stream_->get());
    nccl_api::Result nccl_state = nccl_api::kSuccess;
    const nccl_api::Result asked = with_comm([&](nccl_api::Comm comm) {
      return libraries_.nccl.ncclCommGetAsyncError(comm, &nccl_state);
    });
    if (asked != nccl_api::kSuccess) throw failure_of(asked, what);
    const bool error = nccl_state != nccl_api::kSuccess && nccl_state != nccl_api::kInProgress;
    if (error) throw failure_of(nccl_state, what);
    if (state == cuda_api::kSuccess) return;
    if (state != cuda_api::kNotReady) {
      throw give_up(Failure(DDP_UNAVAILABLE,
                            what + " failed on the GPU, CUDA error " + std::to_string(state)));
    }
    if (deadline.passed()) throw timed_out(what, deadline);
    patience.wait();
  }
}

void NcclGroup::check_memory(const void* pointer) const {
  const auto address = reinterpret_cast<cuda_api::DevicePointer>(pointer);
  unsigned kind = 0;
  const cuda_api::Result known =
      libraries_.cuda.cuPointerGetAttribute(&kind, cuda_api::kAttributeMemoryType, address);
  const bool on_gpu = known == cuda_api::kSuccess &&
                      (kind == cuda_api::kMemoryTypeDevice || kind == cuda_api::kMemoryTypeUnified);
  if (!on_gpu) {
    throw Failure(DDP_INVALID_USE,
                  "the buffer is host memory, and NCCL works on GPU memory only: copy it to the "
                  "GPU, or use a group with a CPU backend");
  }
  int ordinal = device_;
  libraries_.cuda.cuPointerGetAttribute(&ordinal, cuda_api::kAttributeDeviceOrdinal, address);
  if (ordinal != device_) {
    throw Failure(DDP_INVALID_USE, "the buffer is on GPU " + std::to_string(ordinal) +
                                       ", but this group works on GPU " + std::to_string(device_));
  }
}

void NcclGroup::refuse_if_broken() const {
  if (aborted_) throw Failure(DDP_ABORTED, "this group was aborted");
  if (broken_) throw *broken_;
}

Failure NcclGroup::failure_of(nccl_api::Result result, const std::string& what) {
  std::string message = what + " failed: " + libraries_.nccl.ncclGetErrorString(result);
  const char* details = libraries_.nccl.ncclGetLastError(nullptr);
  if (details != nullptr && details[0] != '\0') message += std::string("; NCCL says: ") + details;
  switch (result) {
    case nccl_api::kInvalidArgument:
    case nccl_api::kInvalidUsage:
      return Failure(DDP_INVALID_USE, message);
    case nccl_api::kTimeout:
      return give_up(Failure(DDP_TIMEOUT, message));
    case nccl_api::kRemoteError:
    case nccl_api::kSystemError:
      return give_up(Failure(DDP_PEER_LOST, message));
    default:
      return give_up(Failure(DDP_UNAVAILABLE, message));
  }
}

Failure NcclGroup::timed_out(const std::string& what, const Deadline& deadline) {
  return give_up(Failure(DDP_TIMEOUT, what + " did not end within " +
                                          in_seconds(deadline.timeout()) +
                                          ": a rank did not come, is stuck or is gone"));
}

Failure NcclGroup::give_up(Failure failure) {
  if (aborted_) failure = Failure(DDP_ABORTED, "this group was aborted");
  abort_comm();
  broken_ = failure;
  return failure;
}

void NcclGroup::abort_comm() {
  const CurrentContext current(context_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (comm_ == nullptr) return;
  libraries_.nccl.ncclCommAbort(comm_);
  comm_ = nullptr;
}

// Gives the others their last messages; a peer that is gone must not hold this rank for long.
void NcclGroup::finalize() {
  if (comm_ == nullptr) return;
  const Deadline deadline(std::min(kFinalizeLimit, effective_timeout(-1, timeout_ms_)));
  try {
    const auto finish = [&](nccl_api::Comm comm) { return libraries_.nccl.ncclCommFinalize(comm); };
    settle(with_comm(finish), "the end of an NCCL group", deadline);
  } catch (const Failure&) {
    abort_comm();
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  libraries_.nccl.ncclCommDestroy(comm_);
  comm_ = nullptr;
}

}  // namespace ddp::backends
