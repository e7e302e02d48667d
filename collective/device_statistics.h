// What the operations of devices have cost so far: counters for metrics.
#ifndef TROUPE_COLLECTIVE_DEVICE_STATISTICS_H_
#define TROUPE_COLLECTIVE_DEVICE_STATISTICS_H_

#include <cstdint>
#include <string>

#include "collective/operation.h"

namespace troupe {

// Totals of one (operation, axis, purpose). Bytes are counted as in CollectiveStatistics. Bus bandwidth is bus_bytes /
// seconds.
struct DeviceCollectiveStatistics {
  CollectiveOperation operation = CollectiveOperation::kAllReduce;
  std::string axis;
  Purpose purpose = Purpose::kTensor;
  uint64_t count = 0;  // that are over
  uint64_t bytes = 0;
  double bus_bytes = 0;
  double seconds = 0;  // for which the device stood in them
};

// What each rank must send and receive over its link at the least, of an operation of `bytes` among `ranks`: the measure
// of NCCL's own tests (nccl-tests, doc/PERFORMANCE.md), which is the link's speed at best, however many ranks there are.
double BusBytes(CollectiveOperation operation, double bytes, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_DEVICE_STATISTICS_H_
