// Measures a device's rates by the host's clock, as the basis of the planner's estimates.
#ifndef TROUPE_KERNELS_BACKEND_BACKEND_RATES_H_
#define TROUPE_KERNELS_BACKEND_BACKEND_RATES_H_

#include <cstdint>

#include "base/status.h"
#include "kernels/backend/backend.h"

namespace troupe::kernels {

struct BackendRatesOptions {
  int64_t extent = 8192;                // M, N and K of the matmul
  int64_t samples = 16, tokens = 2048;  // attention shape
  int64_t heads = 16, head_dim = 128;
  int64_t copy_bytes = int64_t{1} << 30;
  double seconds = 0.1;  // approximate duration of one measurement
};

struct BackendRates {
  double float32_matmuls = 0;  // FLOPs a second
  double bfloat16_matmuls = 0;
  double attention = 0;       // model FLOPs a second in bfloat16, forward and backward
  double bytes = 0;           // bytes a second that a copy reads and writes
  double launch_seconds = 0;  // per operation on a few elements, in a long sequence
};

// Each rate is the median of five measurements. Returns the backend's errors.
StatusOr<BackendRates> MeasureBackendRates(Backend& backend, const BackendRatesOptions& options);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_BACKEND_RATES_H_
