// The element types and reductions that collectives know.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ddp {
inline namespace v1 {

// How the ranks' elements become one; torch.distributed.ReduceOp has the same names. In host memory
// all are computed in rank order, ((rank 0 + rank 1) + rank 2) …, so every rank gets the same bits,
// and gets them again in the next run. In GPU memory NCCL chooses the order; it has no int16 and
// no bit operations but band and bor of bool (InvalidUse), and does not say what a NaN does to min
// and max.
//   sum, product  signed integers wrap around; bool: or, and
//   avg           the sum, then divided by the number of ranks; integers round towards zero (as
//                 C++ does); not for bool
//   min, max      bool: and, or; with a NaN among the elements the result is one of the operands,
//                 the same on every rank
//   band, bor, bxor  integers and bool only
enum class ReduceOp : std::uint8_t { sum, avg, product, min, max, band, bor, bxor };

// An element type. Numbered as ddp_dtype in <ddp/backend.h>. float16 and bfloat16 can be broadcast
// everywhere, but reduced in GPU memory only (elsewhere: Unavailable).
enum class DataType : std::uint8_t {
  uint8 = 0,
  int8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  boolean = 10,
  int16 = 11,
};

namespace detail {

template <typename T>
struct NoSuchElementType : std::false_type {};

// Integers are mapped by size and sign, so `long` and `long long` both work.
template <typename T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return DataType::boolean;
  } else if constexpr (std::is_same_v<T, float>) {
    return DataType::float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DataType::float64;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    return std::is_signed_v<T> ? DataType::int8 : DataType::uint8;
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 2) {
    return DataType::int16;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) {
    return std::is_signed_v<T> ? DataType::int32 : DataType::uint32;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    return std::is_signed_v<T> ? DataType::int64 : DataType::uint64;
  } else {
    static_assert(NoSuchElementType<T>::value,
                  "ddp: elements are uint8, int8, int16, int32, uint32, int64, uint64, float, "
                  "double or bool, and not const");
  }
}

}  // namespace detail
}  // namespace v1
}  // namespace ddp
