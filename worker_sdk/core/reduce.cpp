#include "worker_sdk/core/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Compiled with -O3 for the vectoriser and -ffp-contract=off: a fused multiply-add, or another
// order, would make the bits depend on the machine.

namespace ddp::sdk {
namespace {

// Signed overflow is undefined, unsigned wraps: integers are added and multiplied as unsigned.
template <typename T, typename = void>
struct Wrapping {
  using type = T;
};
template <typename T>
struct Wrapping<T, std::enable_if_t<std::is_integral_v<T> && (sizeof(T) >= sizeof(int))>> {
  using type = std::make_unsigned_t<T>;
};

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Product {
  template <typename T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
struct BitAnd {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct Keep {
  template <typename T>
  static T apply(T value, T) {
    return value;
  }
};
// A true division: the product with a rounded reciprocal would give other bits than one process
// that divides by the same number.
struct DivideByRanks {
  template <typename T>
  static T apply(T value, T ranks) {
    return static_cast<T>(value / ranks);
  }
};

// The pragma says that iterations don't depend on each other: an output overlaps an input only at
// the same index.
#if defined(__clang__)
#define DDP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DDP_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <typename Op, typename T>
void combine(T* out, const T* a, const T* b, std::size_t count) {
  DDP_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) out[i] = Op::apply(a[i], b[i]);
}

template <typename Op, typename Finish, typename T>
void combine_last(T* out, const T* a, const T* b, std::size_t count, T ranks) {
  DDP_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) out[i] = Finish::apply(Op::apply(a[i], b[i]), ranks);
}

template <typename Op, typename Finish, typename T>
void combine_last(T* out, T* second, const T* a, const T* b, std::size_t count, T ranks) {
  DDP_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const T value = Finish::apply(Op::apply(a[i], b[i]), ranks);
    out[i] = value;
    second[i] = value;
  }
}

template <typename T>
void copy_only(const Reduction& job) {
  const std::size_t bytes = job.count * sizeof(T);
  if (bytes == 0) return;
  if (job.output != job.inputs[0]) std::memcpy(job.output, job.inputs[0], bytes);
  if (job.second_output != nullptr) std::memcpy(job.second_output, job.inputs[0], bytes);
}

// Block by block, so that what is accumulated stays in the first-level cache. All inputs of a block
// but the last have been read before any of its output is written, hence output may be an input.
template <typename T, typename Op, typename Finish>
void reduce(const Reduction& job) {
  if (job.ranks == 1) return copy_only<T>(job);
  constexpr std::size_t kBlock = 8192 / sizeof(T);
  T accumulated[kBlock];
  const auto input = [&job](std::size_t rank, std::size_t offset) {
    return static_cast<const T*>(job.inputs[rank]) + offset;
  };
  const T ranks = static_cast<T>(job.ranks);
  const std::size_t step = job.ranks == 2 ? job.count : kBlock;
  for (std::size_t done = 0; done < job.count; done += step) {
    const std::size_t count = std::min(step, job.count - done);
    const T* so_far = input(0, done);
    for (std::size_t rank = 1; rank + 1 < job.ranks; ++rank) {
      combine<Op>(accumulated, so_far, input(rank, done), count);
      so_far = accumulated;
    }
    T* out = static_cast<T*>(job.output) + done;
    const T* last = input(job.ranks - 1, done);
    if (job.second_output == nullptr) {
      combine_last<Op, Finish>(out, so_far, last, count, ranks);
    } else {
      combine_last<Op, Finish>(out, static_cast<T*>(job.second_output) + done, so_far, last, count,
                               ranks);
    }
  }
}

// An avg of a narrow type needs a divisor that may not fit into it (200 ranks, int8), so integers
// divide as 64 bits.
template <typename T>
void average_integers(const Reduction& job) {
  reduce<T, Sum, Keep>(job);
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  T* out = static_cast<T*>(job.output);
  T* second = static_cast<T*>(job.second_output);
  const Wide ranks = static_cast<Wide>(job.ranks);
  for (std::size_t i = 0; i < job.count; ++i) {
    out[i] = static_cast<T>(static_cast<Wide>(out[i]) / ranks);
    if (second != nullptr) second[i] = out[i];
  }
}

template <typename T>
ReduceFunction find_float(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce<T, Sum, Keep>;
    case ReduceOp::avg:
      return reduce<T, Sum, DivideByRanks>;
    case ReduceOp::product:
      return reduce<T, Product, Keep>;
    case ReduceOp::min:
      return reduce<T, Min, Keep>;
    case ReduceOp::max:
      return reduce<T, Max, Keep>;
    default:
      return nullptr;
  }
}

template <typename T>
ReduceFunction find_integer(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce<T, Sum, Keep>;
    case ReduceOp::avg:
      return average_integers<T>;
    case ReduceOp::product:
      return reduce<T, Product, Keep>;
    case ReduceOp::min:
      return reduce<T, Min, Keep>;
    case ReduceOp::max:
      return reduce<T, Max, Keep>;
    case ReduceOp::band:
      return reduce<T, BitAnd, Keep>;
    case ReduceOp::bor:
      return reduce<T, BitOr, Keep>;
    case ReduceOp::bxor:
      return reduce<T, BitXor, Keep>;
  }
  return nullptr;
}

// A bool is a byte that is 0 or 1; bit operations keep it so.
ReduceFunction find_bool(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor:
      return reduce<std::uint8_t, BitOr, Keep>;
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band:
      return reduce<std::uint8_t, BitAnd, Keep>;
    case ReduceOp::bxor:
      return reduce<std::uint8_t, BitXor, Keep>;
    case ReduceOp::avg:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

ReduceFunction find_reduction(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::uint8:
      return find_integer<std::uint8_t>(op);
    case DataType::int8:
      return find_integer<std::int8_t>(op);
    case DataType::int16:
      return find_integer<std::int16_t>(op);
    case DataType::int32:
      return find_integer<std::int32_t>(op);
    case DataType::uint32:
      return find_integer<std::uint32_t>(op);
    case DataType::int64:
      return find_integer<std::int64_t>(op);
    case DataType::uint64:
      return find_integer<std::uint64_t>(op);
    case DataType::float32:
      return find_float<float>(op);
    case DataType::float64:
      return find_float<double>(op);
    case DataType::boolean:
      return find_bool(op);
    case DataType::float16:
    case DataType::bfloat16:
      return nullptr;
  }
  return nullptr;
}

}  // namespace ddp::sdk
