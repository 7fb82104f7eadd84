// One collective call as the back-ends see it, and the words for it in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <ddp/types.hpp>

namespace ddp::sdk {

enum class CallKind : std::uint8_t { barrier = 1, all_reduce = 2, broadcast = 3 };

struct Call {
  CallKind kind = CallKind::barrier;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  void* data = nullptr;
  std::size_t count = 0;
  std::uint64_t sequence = 0;  // which collective of the group this is, from 1
};

// What all ranks of a collective must agree on. Lies in shared memory as it is here.
struct Fingerprint {
  std::uint64_t sequence = 0;
  std::uint64_t count = 0;
  std::int32_t root = 0;
  CallKind kind = CallKind::barrier;
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint8_t reserved = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};
static_assert(sizeof(Fingerprint) == 24);

// Members that mean nothing for the kind of call are 0, so that they can't differ.
[[nodiscard]] Fingerprint fingerprint_of(const Call& call);

// "all_reduce(float32, 1000 elements, sum) as collective 7"
[[nodiscard]] std::string describe(const Fingerprint& fingerprint);

// "rank 0 called …, but rank 1 called …"
[[nodiscard]] std::string describe_mismatch(int rank, const Fingerprint& fingerprint,
                                            int other_rank, const Fingerprint& other);

[[nodiscard]] const char* name_of(DataType type);
[[nodiscard]] const char* name_of(ReduceOp op);
[[nodiscard]] const char* name_of(CallKind kind);
[[nodiscard]] std::size_t size_of(DataType type);

// Throws InvalidUse for arguments that no group could carry out.
void check_call(const Call& call, int world_size);
// Throws InvalidUse or Unavailable for a reduction that host memory does not have; what GPU memory
// has, its back-end knows.
void check_host_reduction(const Call& call);

}  // namespace ddp::sdk
