// Measures the fraction of its peak that a host attains when all its devices compute at once, as
// ranks do: forward and backward of a part of a model, separately for matmuls of linear layers and
// for attention.
#ifndef TROUPE_WORKER_DEVICES_ATTAINED_RATES_H_
#define TROUPE_WORKER_DEVICES_ATTAINED_RATES_H_

#include "base/status.h"
#include "worker/devices/device_probe.h"

namespace troupe {

// Fractions of the peak, above 0 and at most 1; means over float32 and bfloat16.
struct AttainedRates {
  double matmuls = 0;
  double attention = 0;
};

struct AttainedRatesOptions {
  int64_t tokens = 512;  // tokens of the one sample on each device
  int rounds = 10;       // the first one is warm-up
};

// Measures two layers with llama-124m's shape on each of `devices` devices, which share the cores.
// Takes seconds. REQUIRES: devices >= 1, tokens >= 1, rounds >= 2; `peak` is of all cores.
StatusOr<AttainedRates> MeasureAttainedRates(const HostPeak& peak, int devices,
                                             const AttainedRatesOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_ATTAINED_RATES_H_
