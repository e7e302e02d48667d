// Searches the layouts of a job: which degrees, microbatch size and recomputation make the shortest
// step on so many devices of a profile, within their memory. Pure.
//
// Layouts are taken in the order of a lower bound of their step's time and planned in full until no
// bound is below the time of the last one that is to be returned: what is returned are the best of
// all, by the planner's own estimates.
#ifndef TROUPE_PLAN_SEARCH_H_
#define TROUPE_PLAN_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/step_time.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct SearchOptions {
  int devices = 1;
  int best = 5;         // how many to return
  int plans_max = 4096;  // that are made in full; what is left then is rejected as not looked at
};

struct FoundLayout {
  v1::JobSpec spec;               // the job with this layout, defaults filled in
  std::vector<std::string> keys;  // what it sets, as --set takes it
  StepTime time;
  int64_t memory_bytes = 0;     // of the rank that needs most
  double seconds_at_least = 0;  // the bound that it was taken by: at most time.seconds
  int64_t bytes_at_least = 0;   // at most memory_bytes
};

struct RejectedLayout {
  std::vector<std::string> keys;
  std::string reason;
};

struct SearchResult {
  std::vector<FoundLayout> best;  // fastest first
  std::vector<RejectedLayout> rejected;
};

// Degrees whose product is `devices`, stages of sharding and sequence parallelism where `spec` does not state them,
// microbatch sizes that divide, each mode of recomputation (more of it only where less does not fit); everything else is
// as `spec`, the job as stated, has it (some defaults depend on the layout).
// Axes that have nothing to spread (experts where there are none) are left at 1. INVALID_ARGUMENT
// where the profile has no rate for the job's compute dtype; an empty `best` where every layout is
// rejected.
StatusOr<SearchResult> SearchLayouts(const v1::JobSpec& spec, const v1::DeviceProfile& profile,
                                     const SearchOptions& options);

// A page of text: the best, then reasons with how many layouts each rejected, the most frequent
// first.
std::string SearchToText(const SearchResult& result);
// One JSON object: best [{keys, step_seconds, mfu, memory_bytes}], rejected [{keys, reason}].
std::string SearchToJson(const SearchResult& result);

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_H_
