// Cumulative costs of the operations of a network, for metrics.
#ifndef TROUPE_COLLECTIVE_STATISTICS_H_
#define TROUPE_COLLECTIVE_STATISTICS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collective/algorithm/operation.h"
#include "collective/scope.h"

namespace troupe {

// Upper bounds of the duration histogram, in seconds; one more bucket follows for longer durations.
inline constexpr std::array<double, 12> kCollectiveDurationBounds = {
    1e-6, 5e-6, 2e-5, 1e-4, 5e-4, 2e-3, 1e-2, 5e-2, 0.25, 1.0, 5.0, 30.0};

// Totals of one (operation, axis, scope, purpose) since the network was created. `bytes` is the
// size of the operation's largest buffer on this rank (all_reduce: the data; all_gather: the
// output), not the bytes sent; a reduction with its own wire format counts packed elements.
struct CollectiveStatistics {
  CollectiveOperation operation = CollectiveOperation::kAllReduce;
  std::string axis;
  Scope scope = Scope::kUnknown;
  Purpose purpose = Purpose::kTensor;
  uint64_t count = 0;
  uint64_t bytes = 0;
  double bus_bytes = 0;  // by BusBytes of collective/device_statistics.h
  double seconds = 0;    // from issue to completion, summed
  std::array<uint64_t, kCollectiveDurationBounds.size() + 1> duration_counts{};
};

// Times of all operations of one purpose so far.
struct PurposeSeconds {
  double total = 0;  // from issue to completion of each, summed
  // Time for which callers were blocked: the whole duration of synchronous operations; the issue of
  // asynchronous ones and the waits for them.
  double exposed = 0;
};

// One of the last operations, as kept by the flight recorder.
struct RecordedOperation {
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  std::string axis;
  uint64_t bytes = 0;
  MonotonicTime issued;
  MonotonicTime finished;
  Duration exposed{};
};

// The progress of one rank in the operations of one group; comparing all ranks shows which ranks
// they wait for.
struct CollectiveFlight {
  std::string group;
  std::string axis;
  std::vector<int> ranks;  // global ranks of the members
  uint64_t entered = 0;    // operations issued on this rank
  // The number, from 1, of the oldest operation of the group that a thread of this rank waits for.
  uint64_t blocked_in = 0;  // 0: there is none, and the following fields are meaningless
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  Purpose purpose = Purpose::kControl;
  uint64_t bytes = 0;
  Duration waited{};  // since its issue; ends at an abort
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_STATISTICS_H_
