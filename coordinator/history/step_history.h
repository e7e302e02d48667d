// Selects which rows of a job's step history are kept: all of the newest steps, and progressively
// fewer of the older ones. Pure.
//
// With `newest` = 65536 and `thinning` = 16, it keeps each of the last 65536 steps, every 16th of
// the last 16 × 65536, every 256th of the last 256 × 65536, and so on. A job therefore has about
// 65536 rows for each factor of 16 in its number of steps. A step that is a multiple of one of
// `kept_every` stays (validation and norms, which few steps have).
#ifndef TROUPE_COORDINATOR_HISTORY_STEP_HISTORY_H_
#define TROUPE_COORDINATOR_HISTORY_STEP_HISTORY_H_

#include <cstdint>
#include <vector>

namespace troupe {

struct HistoryResolution {
  int64_t newest = 65536;
  int64_t thinning = 16;
};

// The steps whose rows are dropped once the row of `step` is stored, if the same was done at each
// step before it. `kept_every`: intervals; those below `thinning` are ignored, because they would
// keep most steps.
std::vector<int64_t> StepsToDrop(int64_t step, const std::vector<int64_t>& kept_every,
                                 const HistoryResolution& resolution = {});

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HISTORY_STEP_HISTORY_H_
