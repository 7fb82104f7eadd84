#include "worker_sdk/backends/gloo/agreement.h"

namespace ddp::backends {
namespace {

void consider(Agreement& result, const sdk::Fingerprint& fingerprint, int32_t rank) {
  if (rank < 0 || fingerprint == result.lowest) return;
  if (result.odd_rank < 0 || rank < result.odd_rank) {
    result.odd = fingerprint;
    result.odd_rank = rank;
  }
}

}  // namespace

Agreement merge(const Agreement& a, const Agreement& b) {
  const Agreement& first = a.lowest_rank <= b.lowest_rank ? a : b;
  Agreement result = Agreement::of(first.lowest, first.lowest_rank);
  for (const Agreement* side : {&a, &b}) {
    consider(result, side->lowest, side->lowest_rank);
    consider(result, side->odd, side->odd_rank);
  }
  return result;
}

}  // namespace ddp::backends
