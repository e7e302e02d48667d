// Whether a device computes what it should: products and copies whose every element is known, again and again.
#ifndef TROUPE_KERNELS_BURN_IN_H_
#define TROUPE_KERNELS_BURN_IN_H_

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"
#include "kernels/backend.h"

namespace troupe::kernels {

struct BurnInOptions {
  int64_t extent = 4096;                  // of the product's three, at most 16384
  int64_t copy_elements = int64_t{1} << 26;  // float32
  Duration at_least{};                    // rounds go on for so long; one is made in any case
  uint64_t seed = 1;
};

struct BurnInReport {
  int64_t rounds = 0;
  double flops = 0;  // of all products
  double bytes = 0;  // read and written by all copies
};

// Each round adds up one to three products of bfloat16 in float32, and one to three times an array of float32. Their terms are
// small integers, so that every sum on the way is one of float32's and the order of sums does not matter. All results are
// read and compared by the host. DATA_LOSS names round, element, value and what it must be; other errors are the device's.
StatusOr<BurnInReport> BurnIn(Backend& backend, const BurnInOptions& options);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BURN_IN_H_
