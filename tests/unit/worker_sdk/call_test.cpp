#include <catch2/catch.hpp>
#include <ddp/error.hpp>
#include <limits>

#include "worker_sdk/core/call.h"

namespace ddp::sdk {
namespace {

using Catch::Matchers::Contains;

Call all_reduce_call(int* data, std::size_t count) {
  Call call;
  call.kind = CallKind::all_reduce;
  call.type = DataType::int32;
  call.data = data;
  call.count = count;
  call.sequence = 7;
  return call;
}

TEST_CASE("fingerprint: whatever ranks must agree on makes it differ") {
  int data = 0;
  const Call base = all_reduce_call(&data, 1);
  const Fingerprint print = fingerprint_of(base);
  Call other = base;
  CHECK(fingerprint_of(other) == print);
  other.count = 2;
  CHECK_FALSE(fingerprint_of(other) == print);
  other = base;
  other.type = DataType::float32;
  CHECK_FALSE(fingerprint_of(other) == print);
  other = base;
  other.op = ReduceOp::max;
  CHECK_FALSE(fingerprint_of(other) == print);
  other = base;
  other.sequence = 8;
  CHECK_FALSE(fingerprint_of(other) == print);
  other = base;
  other.kind = CallKind::broadcast;
  CHECK_FALSE(fingerprint_of(other) == print);
}

TEST_CASE("fingerprint: what means nothing for the call makes no difference") {
  int mine = 0;
  int theirs = 0;
  Call one = all_reduce_call(&mine, 1);
  Call two = all_reduce_call(&theirs, 1);
  two.root = 3;
  CHECK(fingerprint_of(one) == fingerprint_of(two));
  one.kind = two.kind = CallKind::broadcast;
  one.root = 3;
  one.op = ReduceOp::max;
  CHECK(fingerprint_of(one) == fingerprint_of(two));
  one.kind = two.kind = CallKind::barrier;
  one.count = 9;
  CHECK(fingerprint_of(one) == fingerprint_of(two));
}

TEST_CASE("fingerprint: the message says who called what") {
  int data = 0;
  const Fingerprint print = fingerprint_of(all_reduce_call(&data, 1000));
  Call barrier;
  barrier.sequence = 7;
  CHECK(describe(print) == "all_reduce(int32, 1000 elements, sum) as collective 7");
  CHECK(describe(fingerprint_of(barrier)) == "barrier() as collective 7");
  CHECK_THAT(describe_mismatch(0, print, 3, fingerprint_of(barrier)),
             Contains("rank 0 called all_reduce(int32, 1000 elements, sum) as collective 7, but "
                      "rank 3 called barrier()"));
}

TEST_CASE("call: arguments that no group could carry out are refused before anything is sent") {
  int data = 0;
  CHECK_NOTHROW(check_call(all_reduce_call(&data, 1), 2));
  CHECK_NOTHROW(check_call(all_reduce_call(nullptr, 0), 2));
  CHECK_THROWS_AS(check_call(all_reduce_call(nullptr, 1), 2), InvalidUse);
  CHECK_THROWS_AS(check_call(all_reduce_call(&data, std::numeric_limits<std::size_t>::max()), 2),
                  InvalidUse);
  Call broadcast = all_reduce_call(&data, 1);
  broadcast.kind = CallKind::broadcast;
  for (const int root : {-1, 2}) {
    broadcast.root = root;
    CHECK_THROWS_AS(check_call(broadcast, 2), InvalidUse);
  }
}

TEST_CASE("call: what only a GPU can reduce is refused in host memory, and only there") {
  int data = 0;
  Call call = all_reduce_call(&data, 1);
  CHECK_NOTHROW(check_host_reduction(call));
  call.type = DataType::float32;
  call.op = ReduceOp::bxor;
  CHECK_THROWS_AS(check_host_reduction(call), InvalidUse);
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    call.type = type;
    call.op = ReduceOp::sum;
    CHECK_NOTHROW(check_call(call, 2));
    CHECK_THROWS_AS(check_host_reduction(call), Unavailable);
    call.kind = CallKind::broadcast;
    CHECK_NOTHROW(check_host_reduction(call));
    call.kind = CallKind::all_reduce;
  }
}

}  // namespace
}  // namespace ddp::sdk
