// Cumulative costs of device-side collectives, for metrics.
#ifndef TROUPE_COLLECTIVE_DEVICE_STATISTICS_H_
#define TROUPE_COLLECTIVE_DEVICE_STATISTICS_H_

#include <cstdint>
#include <string>

#include "collective/algorithm/operation.h"
#include "collective/scope.h"

namespace troupe {

// Totals of one (operation, axis, scope, purpose). Bytes are counted as in CollectiveStatistics.
// The bus bandwidth is bus_bytes / seconds.
struct DeviceCollectiveStatistics {
  CollectiveOperation operation = CollectiveOperation::kAllReduce;
  std::string axis;
  Scope scope = Scope::kUnknown;
  Purpose purpose = Purpose::kTensor;
  uint64_t count = 0;  // completed operations
  uint64_t bytes = 0;
  double bus_bytes = 0;
  double seconds = 0;  // time the device spent in them
};

// The minimum of bytes that each rank must send and receive over its link for an operation of
// `bytes` among `ranks`. The metric of NCCL's own tests (nccl-tests, doc/PERFORMANCE.md): the
// resulting bandwidth is bounded by the link's speed, independent of the number of ranks.
double BusBytes(CollectiveOperation operation, double bytes, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_DEVICE_STATISTICS_H_
