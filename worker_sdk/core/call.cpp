#include "worker_sdk/core/call.h"

#include <ddp/error.hpp>

#include "worker_sdk/core/reduce.h"

namespace ddp::sdk {

Fingerprint fingerprint_of(const Call& call) {
  Fingerprint print;
  print.sequence = call.sequence;
  print.kind = call.kind;
  if (call.kind == CallKind::barrier) return print;
  print.count = call.count;
  print.type = call.type;
  if (call.kind == CallKind::all_reduce) print.op = call.op;
  if (call.kind == CallKind::broadcast) print.root = call.root;
  return print;
}

std::string describe(const Fingerprint& print) {
  std::string text = name_of(print.kind);
  text += '(';
  if (print.kind != CallKind::barrier) {
    text += std::string(name_of(print.type)) + ", " + std::to_string(print.count) +
            (print.count == 1 ? " element" : " elements");
  }
  if (print.kind == CallKind::all_reduce) text += std::string(", ") + name_of(print.op);
  if (print.kind == CallKind::broadcast) text += ", root " + std::to_string(print.root);
  return text + ") as collective " + std::to_string(print.sequence);
}

std::string describe_mismatch(int rank, const Fingerprint& print, int other_rank,
                              const Fingerprint& other) {
  return "the ranks called different collectives: rank " + std::to_string(rank) + " called " +
         describe(print) + ", but rank " + std::to_string(other_rank) + " called " +
         describe(other) + "; every rank must make the same calls in the same order";
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::uint8:
      return "uint8";
    case DataType::int8:
      return "int8";
    case DataType::int32:
      return "int32";
    case DataType::uint32:
      return "uint32";
    case DataType::int64:
      return "int64";
    case DataType::uint64:
      return "uint64";
    case DataType::float16:
      return "float16";
    case DataType::float32:
      return "float32";
    case DataType::float64:
      return "float64";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::boolean:
      return "bool";
    case DataType::int16:
      return "int16";
  }
  return "unknown type";
}

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::avg:
      return "avg";
    case ReduceOp::product:
      return "product";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::band:
      return "band";
    case ReduceOp::bor:
      return "bor";
    case ReduceOp::bxor:
      return "bxor";
  }
  return "unknown reduction";
}

const char* name_of(CallKind kind) {
  switch (kind) {
    case CallKind::barrier:
      return "barrier";
    case CallKind::all_reduce:
      return "all_reduce";
    case CallKind::broadcast:
      return "broadcast";
  }
  return "unknown call";
}

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::uint8:
    case DataType::int8:
    case DataType::boolean:
      return 1;
    case DataType::int16:
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32:
      return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
      return 8;
  }
  return 0;
}

void check_call(const Call& call, int world_size) {
  const std::string what = name_of(call.kind);
  const std::size_t size = size_of(call.type);
  if (size == 0) {
    throw InvalidUse(what + ": there is no element type with the number " +
                     std::to_string(static_cast<int>(call.type)));
  }
  if (call.count > SIZE_MAX / 2 / size) {
    throw InvalidUse(what + ": " + std::to_string(call.count) +
                     " elements are more than any "
                     "memory holds; a negative count?");
  }
  if (call.data == nullptr && call.count > 0) {
    throw InvalidUse(what + ": the pointer is null, but the count is " +
                     std::to_string(call.count));
  }
  if (call.kind == CallKind::broadcast && (call.root < 0 || call.root >= world_size)) {
    throw InvalidUse("broadcast: the root is rank " + std::to_string(call.root) +
                     ", but ranks go from 0 to " + std::to_string(world_size - 1));
  }
}

void check_host_reduction(const Call& call) {
  if (call.kind != CallKind::all_reduce || find_reduction(call.type, call.op) != nullptr) return;
  if (call.type == DataType::float16 || call.type == DataType::bfloat16) {
    throw Unavailable(std::string("all_reduce: this version does not reduce ") +
                      name_of(call.type) + " on the CPU");
  }
  throw InvalidUse(std::string("all_reduce: ") + name_of(call.op) + " is not defined for " +
                   name_of(call.type));
}

}  // namespace ddp::sdk
