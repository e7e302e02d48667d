// Lower bounds on the time and memory of a layout's plan. A search makes full plans only for
// layouts whose bounds are better than what it has found.
//
// A bound is the sum of the costs of blocks, measured once on a small program
// (plan/search/block_costs.h), and of the transfers and the state of sharded parameters by their
// size. Pure.
#ifndef TROUPE_PLAN_SEARCH_LAYOUT_BOUND_H_
#define TROUPE_PLAN_SEARCH_LAYOUT_BOUND_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/cost/choose_schedule.h"
#include "plan/schedules/schedules.h"
#include "plan/search/block_costs.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"

namespace troupe {

struct LayoutBound {
  int64_t bytes = 0;   // at most LayoutEstimate::memory_bytes of a layout that fits
  double seconds = 0;  // at most StepTime::seconds
};

// Keeps the costs of blocks of all layouts, and the cuts of the model. Thread-safe.
class LayoutBounds {
 public:
  // `peak`: FLOPs per second of the job's compute dtype. Keeps a reference to `profile`.
  LayoutBounds(const v1::DeviceProfile& profile, double peak) : profile_(profile), peak_(peak) {}

  // The bound of a layout; 0 for one that cannot be planned. REQUIRES: ValidateJobSpec accepts
  // the job; it differs from those of other calls in parallelism, micro_batch_size and the mode of
  // recomputation only.
  LayoutBound Of(const DecodedJob& job);
  // The schedules that the planner may choose for a step of at most `seconds`, by their bounds.
  std::vector<ScheduleOption> SchedulesWithin(const DecodedJob& job, double seconds);

 private:
  // The bound with one schedule; none where it cannot be planned.
  std::optional<LayoutBound> Of(const DecodedJob& job, const NamedSchedule& named);
  // The bounds with the schedules that can be planned.
  std::vector<std::pair<ScheduleKind, LayoutBound>> OfEachSchedule(const DecodedJob& job);

  // One chunk of a cut.
  struct Piece {
    std::string letters;
    bool has_embedding = false;
    bool has_head = false;
    bool sends_gradient = false;  // to the chunk below
  };

  // The costs of the blocks of some layouts, measured by the first thread that asks for them.
  struct Measured {
    std::once_flag once;
    std::optional<BlockCosts> costs;  // none where the blocks cannot be built
  };

  // The chunks; empty where the model has fewer blocks. The reference stays valid.
  const std::vector<Piece>& Cut(const DecodedJob& job, int chunks);
  // Null where the blocks cannot be built.
  const BlockCosts* CostsOf(const DecodedJob& job, const LeastSeconds& seconds);

  const v1::DeviceProfile& profile_;
  const double peak_;
  std::mutex mutex_;  // protects the maps, not their elements
  // By the number of chunks and the split points.
  std::map<std::pair<int, std::vector<int64_t>>, std::vector<Piece>> cuts_;
  std::map<std::string, Measured> costs_;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_LAYOUT_BOUND_H_
