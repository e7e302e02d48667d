// What no plan of a layout undercuts, from the numbers of the model alone: a search makes in full
// only those plans whose bounds are better than what it has found. Pure.
#ifndef TROUPE_PLAN_SEARCH_BOUNDS_H_
#define TROUPE_PLAN_SEARCH_BOUNDS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "model/config.h"
#include "plan/chunk_bound.h"
#include "plan/device_profile.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct LayoutBounds {
  int64_t bytes = 0;   // at most LayoutEstimate::memory_bytes of a layout that fits
  double seconds = 0;  // at most StepTime::seconds
};

// Remembers where the model is cut; one thread at a time.
class SearchBounds {
 public:
  // `peak`: of the job's compute dtype, a second. Keeps references to `model` and `profile`.
  SearchBounds(const model::ModelConfig& model, const v1::DeviceProfile& profile, double peak)
      : model_(model),
        profile_(profile),
        flops_(peak * std::max(profile.product_efficiency(), AttentionEfficiency(profile))) {}

  // Nothing of a layout that cannot be planned. REQUIRES: `spec` is a valid one of the model, its
  // defaults are filled in.
  LayoutBounds Of(const v1::JobSpec& spec);

 private:
  // By chunk. Empty where the model cannot be cut in so many.
  const std::vector<ChunkContents>& Cut(const v1::JobSpec& spec, int chunks);

  const model::ModelConfig& model_;
  const v1::DeviceProfile& profile_;
  const double flops_;  // a second: what products attain, or attention where that is more
  std::map<int, std::vector<ChunkContents>>
      cuts_;  // by number of chunks: it depends on nothing else
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_BOUNDS_H_
