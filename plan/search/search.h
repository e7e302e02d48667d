// Searches the layouts of a job: the keys of parallelism, the microbatch size and the recomputation
// that make the shortest step on a given number of devices of a profile, within their memory. Pure.
//
// Layouts (degrees, ZeRO stage, microbatch size, recomputation) are visited in the order of a lower
// bound of their step time, and planned in full until no bound is below the time of the slowest
// layout to be kept. Those that are kept are therefore the best of all, by the planner's own
// estimates, with the other keys as the job has them. Then the other keys of these are varied, one
// after the other.
#ifndef TROUPE_PLAN_SEARCH_SEARCH_H_
#define TROUPE_PLAN_SEARCH_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/cost/step_time.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct SearchOptions {
  int devices = 1;
  int best = 5;  // number of layouts to return; at least 1
  // The number of best layouts whose other keys are varied too (plan/search/variants.h); 0: none.
  int varied = 12;
  int plans_max = 4096;  // limit of layouts planned in full; the rest is rejected as not evaluated
};

struct FoundLayout {
  v1::JobSpec spec;               // the job with this layout, defaults filled in
  std::vector<std::string> keys;  // the keys that the layout sets, as --set accepts them
  StepTime time;
  int64_t memory_bytes = 0;     // the largest need of any rank
  double seconds_at_least = 0;  // the lower bound by which it was visited: at most time.seconds
  int64_t bytes_at_least = 0;   // lower bound: at most memory_bytes
};

struct RejectedLayout {
  std::vector<std::string> keys;
  std::string reason;
};

struct SearchResult {
  std::vector<FoundLayout> best;  // fastest first
  std::vector<RejectedLayout> rejected;
};

// Searches all degrees with product `devices`, zero_stage and sequence_parallel where `spec` does
// not state them, all microbatch sizes that divide, and each mode of recomputation (more
// recomputation only where less does not fit). For the best layouts, it then varies the other keys
// that `spec` does not state (plan/search/variants.h). Everything else is as in `spec`, the job as
// the user stated it (some defaults depend on the layout). Axes with nothing to distribute (expert
// in a model without experts) stay at 1. INVALID_ARGUMENT where the profile has no rate for the
// job's compute dtype. `best` is empty where every layout is rejected.
StatusOr<SearchResult> SearchLayouts(const v1::JobSpec& spec, const v1::DeviceProfile& profile,
                                     const SearchOptions& options);

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_SEARCH_H_
