#include "collective/device_statistics.h"

namespace troupe {

double BusBytes(CollectiveOperation operation, double bytes, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case CollectiveOperation::kAllReduce:
      return 2 * others * bytes;
    case CollectiveOperation::kReduceScatter:
    case CollectiveOperation::kAllGather:
    case CollectiveOperation::kAllToAll:
      return others * bytes;
    case CollectiveOperation::kBroadcast:
    case CollectiveOperation::kSend:
    case CollectiveOperation::kReceive:
      return bytes;
    case CollectiveOperation::kBarrier:
      return 0;
  }
  return 0;
}

}  // namespace troupe
