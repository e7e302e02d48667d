// The kinds of collective operations, and their names in metrics, watchdog and flight recorder.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_OPERATION_H_
#define TROUPE_COLLECTIVE_ALGORITHM_OPERATION_H_

#include <cstdint>
#include <string_view>

#include "base/metrics/purpose.h"

namespace troupe {

enum class CollectiveOperation : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kSend,
  kReceive,
  kBarrier,
};
inline constexpr int kCollectiveOperations = 8;

// "all_reduce", "reduce_scatter", …
std::string_view Name(CollectiveOperation operation);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_OPERATION_H_
