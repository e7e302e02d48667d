// How fast a device is in what steps are made of, by the host's clock: what the planner's estimates rest on.
#ifndef TROUPE_KERNELS_BACKEND_RATES_H_
#define TROUPE_KERNELS_BACKEND_RATES_H_

#include <cstdint>

#include "base/status.h"
#include "kernels/backend.h"

namespace troupe::kernels {

struct BackendRatesOptions {
  int64_t extent = 8192;                     // of the product's three
  int64_t samples = 16, tokens = 2048;       // of attention
  int64_t heads = 16, head_dim = 128;
  int64_t copy_bytes = int64_t{1} << 30;
  double seconds = 0.1;                      // of what is timed at once, about
};

struct BackendRates {
  double float32_products = 0;   // FLOPs a second
  double bfloat16_products = 0;
  double attention = 0;          // model FLOPs a second, of bfloat16, forward and backward
  double bytes = 0;              // bytes a second, read and written by a copy
  double launch_seconds = 0;     // of one operation of a few elements, of many in a row
};

// Medians of five. Errors of the backend.
StatusOr<BackendRates> MeasureBackendRates(Backend& backend, const BackendRatesOptions& options);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_RATES_H_
