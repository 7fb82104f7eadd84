// NCCL's numbers for the seam's element types and reductions.
#pragma once

#include <optional>

#include "worker_sdk/backends/nccl/nccl_api.h"
#include "worker_sdk/backends/seam.h"
#include "worker_sdk/core/call.h"

namespace ddp::backends {

// Booleans travel as bytes. Nothing for a type that NCCL lacks.
inline std::optional<nccl_api::DataType> nccl_type(DataType type) {
  switch (type) {
    case DataType::uint8:
    case DataType::boolean:
      return nccl_api::kUint8;
    case DataType::int8:
      return nccl_api::kInt8;
    case DataType::int32:
      return nccl_api::kInt32;
    case DataType::uint32:
      return nccl_api::kUint32;
    case DataType::int64:
      return nccl_api::kInt64;
    case DataType::uint64:
      return nccl_api::kUint64;
    case DataType::float16:
      return nccl_api::kFloat16;
    case DataType::float32:
      return nccl_api::kFloat32;
    case DataType::float64:
      return nccl_api::kFloat64;
    case DataType::bfloat16:
      return nccl_api::kBfloat16;
    case DataType::int16:
      break;
  }
  return std::nullopt;
}

// Of booleans, "or" is a maximum and "and" a minimum.
inline std::optional<nccl_api::RedOp> nccl_op(ReduceOp op, bool of_booleans) {
  switch (op) {
    case ReduceOp::sum:
      return of_booleans ? nccl_api::kMax : nccl_api::kSum;
    case ReduceOp::product:
      return of_booleans ? nccl_api::kMin : nccl_api::kProd;
    case ReduceOp::min:
      return nccl_api::kMin;
    case ReduceOp::max:
      return nccl_api::kMax;
    case ReduceOp::avg:
      if (!of_booleans) return nccl_api::kAvg;
      break;
    case ReduceOp::band:
      if (of_booleans) return nccl_api::kMin;
      break;
    case ReduceOp::bor:
      if (of_booleans) return nccl_api::kMax;
      break;
    case ReduceOp::bxor:
      break;
  }
  return std::nullopt;
}

}  // namespace ddp::backends
