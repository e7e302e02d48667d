// Checks that a device computes correctly: repeats matmuls and copies whose every result element is
// known.
#ifndef TROUPE_KERNELS_BACKEND_BURN_IN_H_
#define TROUPE_KERNELS_BACKEND_BURN_IN_H_

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/backend/backend.h"

namespace troupe::kernels {

struct BurnInOptions {
  int64_t extent = 4096;                     // M, N and K of the matmul, at most 16384
  int64_t copy_elements = int64_t{1} << 26;  // float32
  Duration at_least{};                       // rounds repeat at least this long; minimum one
  uint64_t seed = 1;
};

struct BurnInReport {
  int64_t rounds = 0;
  double flops = 0;  // sum over all matmuls
  double bytes = 0;  // read and written by all copies
};

// Each round accumulates one to three bfloat16 matmuls in float32, and one to three copies of a
// float32 array. The terms are small integers, so that every partial sum is exact in float32 and
// the order of summation does not matter. The host reads and compares all results. Errors:
// DATA_LOSS with round, element, actual and expected value; INVALID_ARGUMENT if an extent is out of
// range; otherwise the device's errors.
StatusOr<BurnInReport> BurnIn(Backend& backend, const BurnInOptions& options);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_BURN_IN_H_
