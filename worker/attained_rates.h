// What a host attains of its peak where every one of its devices computes at once, as ranks do: a piece of a model, forward
// and backward, by what is multiplied.
#ifndef TROUPE_WORKER_ATTAINED_RATES_H_
#define TROUPE_WORKER_ATTAINED_RATES_H_

#include "base/status.h"
#include "worker/device_probe.h"

namespace troupe {

// Shares of the peak, above 0 and at most 1; means over float32 and bfloat16.
struct AttainedRates {
  double products = 0;
  double attention = 0;
};

struct AttainedRatesOptions {
  int64_t tokens = 512;  // of each device's one row
  int rounds = 10;       // the first of which warms up
};

// Two layers of llama-124m's shape on each of `devices`, which share the cores. Takes seconds. REQUIRES: devices >= 1,
// tokens >= 1, rounds >= 2; `peak` is of all cores.
StatusOr<AttainedRates> MeasureAttainedRates(const HostPeak& peak, int devices,
                                             const AttainedRatesOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_ATTAINED_RATES_H_
