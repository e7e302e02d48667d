// Lower bounds on the time and memory of a layout's plan, from the model's dimensions only. A
// search makes full plans only for layouts whose bounds are better than what it has found. Pure.
#ifndef TROUPE_PLAN_SEARCH_SEARCH_BOUNDS_H_
#define TROUPE_PLAN_SEARCH_SEARCH_BOUNDS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "model/config.h"
#include "plan/device/device_profile.h"
#include "plan/search/chunk_bound.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct LayoutBounds {
  int64_t bytes = 0;   // at most LayoutEstimate::memory_bytes of a layout that fits
  double seconds = 0;  // at most StepTime::seconds
};

// Caches the cuts of the model. Not thread-safe.
class SearchBounds {
 public:
  // `peak`: FLOPs per second of the job's compute dtype. Keeps references to `model` and `profile`.
  SearchBounds(const model::ModelConfig& model, const v1::DeviceProfile& profile, double peak)
      : model_(model),
        profile_(profile),
        flops_(peak * std::max(profile.product_efficiency(), AttentionEfficiency(profile))) {}

  // The bounds of a layout; 0 for one that cannot be planned. REQUIRES: `spec` is a valid job with
  // this model, its defaults are filled in.
  LayoutBounds Of(const v1::JobSpec& spec);

 private:
  // The contents by chunk. Empty where the model cannot be cut into `chunks` chunks.
  const std::vector<ChunkContents>& Cut(const v1::JobSpec& spec, int chunks);

  const model::ModelConfig& model_;
  const v1::DeviceProfile& profile_;
  const double flops_;  // attained per second by matmuls, or by attention if that is more
  std::map<int, std::vector<ChunkContents>>
      cuts_;  // by number of chunks: the cut depends on nothing else
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_SEARCH_BOUNDS_H_
