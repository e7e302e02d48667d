// Splits rows of q | k | v into rows of q and rows of k | v, or joins them.
#include <algorithm>

#include "kernels/reference/operation.h"

namespace troupe::kernels::reference {

Status SplitHeads(const Operation& operation) {
  const int64_t q = operation.Output(0).row_elements(), kv = operation.Output(1).row_elements();
  for (int64_t row = 0; row < operation.Extent(0, 0); ++row) {
    const double* qkv = operation.inputs[0] + row * (q + kv);
    std::copy_n(qkv, q, operation.outputs[0] + row * q);
    std::copy_n(qkv + q, kv, operation.outputs[1] + row * kv);
  }
  return OkStatus();
}

Status JoinHeads(const Operation& operation) {
  const int64_t q = operation.Extent(0, 1), kv = operation.Extent(1, 1);
  for (int64_t row = 0; row < operation.Extent(0, 0); ++row) {
    double* qkv = operation.outputs[0] + row * (q + kv);
    std::copy_n(operation.inputs[0] + row * q, q, qkv);
    std::copy_n(operation.inputs[1] + row * kv, kv, qkv + q);
  }
  return OkStatus();
}

}  // namespace troupe::kernels::reference
