#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "worker_sdk/core/call.h"
#include "worker_sdk/core/reduce.h"

namespace ddp::sdk {
namespace {

template <typename T>
std::vector<std::vector<T>> make_inputs(int ranks, std::size_t count) {
  std::vector<std::vector<T>> inputs;
  std::uint64_t state = 42;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<T> values(count);
    for (T& value : values) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      if constexpr (std::is_floating_point_v<T>) {
        value = static_cast<T>(static_cast<std::int64_t>(state >> 12) % 100003) / static_cast<T>(7);
      } else {
        value = static_cast<T>(state >> 17);
      }
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

// Written without any of the tricks of the code under test.
template <typename T>
T naive(ReduceOp op, const std::vector<T>& column) {
  using U = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  T result = column[0];
  for (std::size_t i = 1; i < column.size(); ++i) {
    const T next = column[i];
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result = static_cast<T>(static_cast<U>(result) + static_cast<U>(next));
        break;
      case ReduceOp::product:
        result = static_cast<T>(static_cast<U>(result) * static_cast<U>(next));
        break;
      case ReduceOp::min:
        result = std::min(result, next);
        break;
      case ReduceOp::max:
        result = std::max(result, next);
        break;
      default:
        if constexpr (std::is_integral_v<T>) {
          if (op == ReduceOp::band) result = static_cast<T>(result & next);
          if (op == ReduceOp::bor) result = static_cast<T>(result | next);
          if (op == ReduceOp::bxor) result = static_cast<T>(result ^ next);
        }
    }
  }
  if (op == ReduceOp::avg) {
    if constexpr (std::is_floating_point_v<T>) {
      result = result / static_cast<T>(column.size());
    } else {
      // As a mathematician divides, then cut off: the sign of the divisor must not matter.
      result = static_cast<T>(
          std::trunc(static_cast<long double>(result) / static_cast<long double>(column.size())));
    }
  }
  return result;
}

template <typename T>
void check_type(DataType type, ReduceOp op, int ranks, std::size_t count, bool second,
                int aliased) {
  const ReduceFunction reduce = find_reduction(type, op);
  REQUIRE(reduce != nullptr);
  std::vector<std::vector<T>> inputs = make_inputs<T>(ranks, count);
  std::vector<T> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<T> column;
    for (const auto& input : inputs) column.push_back(input[i]);
    expected[i] = naive(op, column);
  }
  std::vector<T> separate(count);
  std::vector<T> copy(count);
  std::vector<const void*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  T* output = aliased < 0 ? separate.data() : inputs[static_cast<std::size_t>(aliased)].data();
  Reduction job;
  job.inputs = pointers.data();
  job.ranks = pointers.size();
  job.count = count;
  job.output = output;
  job.second_output = second ? copy.data() : nullptr;
  reduce(job);
  CHECK(std::memcmp(output, expected.data(), count * sizeof(T)) == 0);
  if (second) CHECK(copy == expected);
}

template <typename T>
void check_all(DataType type, const std::vector<ReduceOp>& ops) {
  for (const ReduceOp op : ops) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{17}, std::size_t{9001}}) {
        for (const int aliased : {-1, 0, ranks - 1}) {
          INFO(name_of(type) << " " << name_of(op) << " " << ranks << " " << count << " "
                             << aliased);
          check_type<T>(type, op, ranks, count, false, aliased);
          check_type<T>(type, op, ranks, count, true, aliased);
        }
      }
    }
  }
}

const std::vector<ReduceOp> kArithmetic{ReduceOp::sum, ReduceOp::avg, ReduceOp::product,
                                        ReduceOp::min, ReduceOp::max};
const std::vector<ReduceOp> kAll{ReduceOp::sum, ReduceOp::avg,  ReduceOp::product, ReduceOp::min,
                                 ReduceOp::max, ReduceOp::band, ReduceOp::bor,     ReduceOp::bxor};

TEST_CASE("reduce: every type and operation agrees with the naive loop") {
  check_all<std::uint8_t>(DataType::uint8, kAll);
  check_all<std::int8_t>(DataType::int8, kAll);
  check_all<std::int16_t>(DataType::int16, kAll);
  check_all<std::int32_t>(DataType::int32, kAll);
  check_all<std::uint32_t>(DataType::uint32, kAll);
  check_all<std::int64_t>(DataType::int64, kAll);
  check_all<std::uint64_t>(DataType::uint64, kAll);
  check_all<float>(DataType::float32, kArithmetic);
  check_all<double>(DataType::float64, kArithmetic);
}

TEST_CASE("reduce: a bool stays a bool") {
  const std::vector<bool> table{false, true};
  for (const bool a : table) {
    for (const bool b : table) {
      const bool inputs[2] = {a, b};
      const void* pointers[2] = {&inputs[0], &inputs[1]};
      const auto run = [&](ReduceOp op) {
        bool out = false;
        find_reduction(DataType::boolean, op)(Reduction{pointers, 2, 1, &out, nullptr});
        return out;
      };
      CHECK(run(ReduceOp::sum) == (a || b));
      CHECK(run(ReduceOp::max) == (a || b));
      CHECK(run(ReduceOp::bor) == (a || b));
      CHECK(run(ReduceOp::product) == (a && b));
      CHECK(run(ReduceOp::min) == (a && b));
      CHECK(run(ReduceOp::band) == (a && b));
      CHECK(run(ReduceOp::bxor) == (a != b));
    }
  }
}

TEST_CASE("reduce: what makes no sense has no function") {
  CHECK(find_reduction(DataType::float32, ReduceOp::band) == nullptr);
  CHECK(find_reduction(DataType::float64, ReduceOp::bxor) == nullptr);
  CHECK(find_reduction(DataType::boolean, ReduceOp::avg) == nullptr);
  CHECK(find_reduction(DataType::float16, ReduceOp::sum) == nullptr);
  CHECK(find_reduction(static_cast<DataType>(99), ReduceOp::sum) == nullptr);
}

TEST_CASE("reduce: an average of narrow integers divides by more ranks than the type can hold") {
  const std::vector<std::int8_t> zeros(1, 0);
  std::vector<std::int8_t> one(1, 100);
  std::vector<const void*> inputs(300, zeros.data());
  inputs[0] = one.data();
  std::int8_t out = 1;
  find_reduction(DataType::int8, ReduceOp::avg)(Reduction{inputs.data(), 300, 1, &out, nullptr});
  CHECK(out == 0);
}

}  // namespace
}  // namespace ddp::sdk
