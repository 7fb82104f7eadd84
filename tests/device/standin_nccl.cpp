// A stand-in for libnccl.so.2, for tests only: real processes exchange real data through a file
// that all map.
//
// It proves the order of our calls, polling, streams, abort and results. It is stricter than NCCL
// in one way (every call answers "in progress" first) and as silent in another: a dead rank is
// never reported, only missed. It proves nothing about NCCL, its timing or its transports.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "worker_sdk/backends/nccl/nccl_api.h"

extern "C" int cuLaunchHostFunc(ddp::cuda_api::Stream stream, void (*function)(void*), void* data);

namespace {

using namespace ddp::nccl_api;
using ddp::cuda_api::Stream;

constexpr int kMostRanks = 8;
constexpr size_t kPieceBytes = 1 << 18;

struct Segment {
  std::atomic<int> joined;
  std::atomic<bool> aborted;
  std::atomic<uint64_t> written[kMostRanks];
  std::atomic<uint64_t> read[kMostRanks];
  char data[kMostRanks][kPieceBytes];
};

void nap() {
  std::this_thread::sleep_for(std::chrono::microseconds(100));
}

// The upper half of a float; what does not fit is cut off.
class Bfloat16 {
 public:
  Bfloat16() = default;
  explicit Bfloat16(double value) {
    const float narrow = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    bits_ = static_cast<uint16_t>(bits >> 16);
  }
  operator float() const {
    const uint32_t bits = uint32_t{bits_} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  uint16_t bits_ = 0;
};

template <class T>
void reduce_as(char* into, const char* from, size_t bytes, RedOp op) {
  T* a = reinterpret_cast<T*>(into);
  const T* b = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    if (op == kProd) {
      a[i] = static_cast<T>(a[i] * b[i]);
    } else if (op == kMax) {
      a[i] = std::max(a[i], b[i]);
    } else if (op == kMin) {
      a[i] = std::min(a[i], b[i]);
    } else {
      a[i] = static_cast<T>(a[i] + b[i]);
    }
  }
}

template <class T>
void scale_as(char* data, size_t bytes, double factor) {
  T* a = reinterpret_cast<T*>(data);
  for (size_t i = 0; i < bytes / sizeof(T); ++i)
    a[i] = static_cast<T>(static_cast<double>(a[i]) * factor);
}

template <class F>
void as_type(DataType type, F&& f) {
  switch (type) {
    case kInt8:
      return f(int8_t{});
    case kUint8:
      return f(uint8_t{});
    case kInt32:
      return f(int32_t{});
    case kUint32:
      return f(uint32_t{});
    case kInt64:
      return f(int64_t{});
    case kUint64:
      return f(uint64_t{});
    case kFloat32:
      return f(float{});
    case kFloat64:
      return f(double{});
    case kBfloat16:
      return f(Bfloat16{});
    default:
      std::abort();  // The stand-in knows no float16.
  }
}

size_t size_of(DataType type) {
  size_t size = 0;
  as_type(type, [&](auto zero) { size = sizeof zero; });
  return size;
}

}  // namespace

namespace ddp::nccl_api {

struct OpaqueComm {
  OpaqueComm(const char* file, int ranks_, int rank_) : path(file), ranks(ranks_), rank(rank_) {
    const int descriptor = open(file, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    void* memory =
        mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory != MAP_FAILED) segment = static_cast<Segment*>(memory);
  }
  ~OpaqueComm() {
    if (segment != nullptr) munmap(segment, sizeof(Segment));
  }

  [[nodiscard]] bool stopped() const { return aborted || segment->aborted; }

  void join() {
    ++segment->joined;
    while (segment->joined < ranks) {
      if (stopped()) {
        state = kRemoteError;
        return;
      }
      nap();
    }
    unlink(path.c_str());
    state = kSuccess;
  }

  // All ranks have passed `count` in `counters`, or someone aborted.
  bool await(const std::atomic<uint64_t>* counters, uint64_t count) {
    for (int peer = 0; peer < ranks; ++peer) {
      while (counters[peer] < count) {
        if (stopped()) {
          state = kRemoteError;
          return false;
        }
        nap();
      }
    }
    return true;
  }

  // One piece: each rank writes its part, all read, none writes the next before all have read.
  bool exchange(const char* mine, size_t bytes, const std::function<void()>& use) {
    ++pieces;
    std::memcpy(segment->data[rank], mine, bytes);
    segment->written[rank] = pieces;
    if (!await(segment->written, pieces)) return false;
    use();
    segment->read[rank] = pieces;
    return await(segment->read, pieces);
  }

  const std::string path;
  const int ranks;
  const int rank;
  Segment* segment = nullptr;
  uint64_t pieces = 0;
  std::atomic<int> state{kInProgress};
  std::atomic<bool> aborted{false};
  std::map<RedOp, double> factors;
  RedOp next_op = 100;
};

}  // namespace ddp::nccl_api

namespace {

// A handle outlives its destruction as long as work is queued on it.
std::map<Comm, std::shared_ptr<OpaqueComm>>& live() {
  static std::map<Comm, std::shared_ptr<OpaqueComm>> held;
  return held;
}

std::shared_ptr<OpaqueComm> find(Comm comm) {
  const auto found = live().find(comm);
  return found == live().end() ? nullptr : found->second;
}

Result enqueue(Stream stream, std::function<void()> work) {
  auto held = std::make_unique<std::function<void()>>(std::move(work));
  const auto run = [](void* data) {
    const std::unique_ptr<std::function<void()>> task(static_cast<std::function<void()>*>(data));
    (*task)();
  };
  return cuLaunchHostFunc(stream, run, held.release()) == 0 ? kInProgress : kUnhandledCudaError;
}

void all_reduce(OpaqueComm& comm, const char* input, char* output, size_t bytes, DataType type,
                RedOp op, std::optional<double> factor) {
  std::string part;
  for (size_t offset = 0; offset < bytes; offset += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, bytes - offset);
    part.assign(input + offset, size);
    if (factor) {
      as_type(type, [&](auto zero) { scale_as<decltype(zero)>(part.data(), size, *factor); });
    }
    const bool done = comm.exchange(part.data(), size, [&] {
      std::string sum(comm.segment->data[0], size);
      as_type(type, [&](auto zero) {
        using T = decltype(zero);
        for (int peer = 1; peer < comm.ranks; ++peer) {
          reduce_as<T>(sum.data(), comm.segment->data[peer], size, op);
        }
        if (op == kAvg) scale_as<T>(sum.data(), size, 1.0 / comm.ranks);
      });
      std::memcpy(output + offset, sum.data(), size);
    });
    if (!done) return;
  }
}

void broadcast(OpaqueComm& comm, const char* input, char* output, size_t bytes, int root) {
  for (size_t offset = 0; offset < bytes; offset += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, bytes - offset);
    const bool done = comm.exchange(input + offset, size, [&] {
      std::memcpy(output + offset, comm.segment->data[root], size);
    });
    if (!done) return;
  }
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

Result ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}
Result ncclGetUniqueId(UniqueId* id) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/standin-nccl-XXXXXX";
  if (path.size() >= sizeof id->internal) return kSystemError;
  const int descriptor = mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(Segment)) != 0) return kSystemError;
  close(descriptor);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, path.c_str(), path.size());
  return kSuccess;
}
Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  if (ranks > kMostRanks || config->magic != Config{}.magic) return kInvalidArgument;
  if (config->blocking != 0) return kInvalidUsage;  // Our plug-in must never block in here.
  const auto made = std::make_shared<OpaqueComm>(id.internal, ranks, rank);
  if (made->segment == nullptr) return kSystemError;
  live()[made.get()] = made;
  *comm = made.get();
  std::thread([made] { made->join(); }).detach();
  return kInProgress;
}
Result ncclCommFinalize(Comm) {
  return kInProgress;
}
Result ncclCommDestroy(Comm comm) {
  live().erase(comm);
  return kSuccess;
}
Result ncclCommAbort(Comm comm) {
  const auto held = find(comm);
  if (held == nullptr) return kInvalidArgument;
  held->aborted = true;
  held->segment->aborted = true;
  unlink(held->path.c_str());
  live().erase(comm);
  return kSuccess;
}
Result ncclCommGetAsyncError(Comm comm, Result* result) {
  const auto held = find(comm);
  if (held == nullptr) return kInvalidArgument;
  *result = held->state;
  return kSuccess;
}
const char* ncclGetErrorString(Result result) {
  return result == kSuccess ? "no error" : "stand-in error";
}
const char* ncclGetLastError(Comm) {
  return "";
}
Result ncclAllReduce(const void* input, void* output, size_t count, DataType type, RedOp op,
                     Comm comm, Stream stream) {
  const auto held = find(comm);
  if (held == nullptr) return kInvalidArgument;
  const auto scaled = held->factors.find(op);
  std::optional<double> factor;
  if (scaled != held->factors.end()) factor = scaled->second;
  return enqueue(stream, [=] {
    all_reduce(*held, static_cast<const char*>(input), static_cast<char*>(output),
               count * size_of(type), type, op, factor);
  });
}
Result ncclBroadcast(const void* input, void* output, size_t count, DataType type, int root,
                     Comm comm, Stream stream) {
  const auto held = find(comm);
  if (held == nullptr) return kInvalidArgument;
  return enqueue(stream, [=] {
    broadcast(*held, static_cast<const char*>(input), static_cast<char*>(output),
              count * size_of(type), root);
  });
}
Result ncclRedOpCreatePreMulSum(RedOp* op, void* scalar, DataType type, int residence, Comm comm) {
  const auto held = find(comm);
  if (held == nullptr || residence != kScalarHostImmediate) return kInvalidArgument;
  *op = held->next_op++;
  held->factors[*op] = type == kFloat32 ? static_cast<double>(*static_cast<float*>(scalar))
                                        : *static_cast<double*>(scalar);
  return kSuccess;
}
Result ncclRedOpDestroy(RedOp op, Comm comm) {
  const auto held = find(comm);
  return held != nullptr && held->factors.erase(op) == 1 ? kSuccess : kInvalidArgument;
}

#pragma GCC visibility pop
}
