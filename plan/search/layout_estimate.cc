#include "plan/search/layout_estimate.h"

#include <algorithm>
#include <vector>

#include "plan/bare_plan.h"
#include "plan/cost/stage_memo.h"
#include "plan/search/step_bound.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
StatusOr<LayoutEstimate> EstimateLayout(const DecodedJob& job, const v1::DeviceProfile& profile,
                                        double too_slow_seconds,
                                        const std::vector<ScheduleOption>& schedules) {
  StageMemo stages(job, profile);
  TROUPE_ASSIGN_OR_RETURN(const double peak, stages.peak());
  TROUPE_ASSIGN_OR_RETURN(const BarePlan bare, MakeBarePlan(job, &stages, schedules));
  const auto& [plan, schedule] = bare;
  std::vector<LiveMicrobatches> live;
  bool split_backward = false;
  for (const auto& actions : schedule.actions) {
    live.push_back(CountLiveMicrobatches(actions));
    split_backward |= live.back().split_backward;
  }
  LayoutEstimate estimate;
  StepBound bound(schedule.microbatches, split_backward);
  std::vector<StageTime> times;
  for (int pipe_rank = 0; pipe_rank < plan.mesh().pipe(); ++pipe_rank) {
    const LiveMicrobatches& of_rank = live[static_cast<size_t>(pipe_rank)];
    const StageRun run = {pipe_rank, schedule.microbatches, of_rank.split_backward};
    TROUPE_ASSIGN_OR_RETURN(const StageMemory* const memory, stages.MemoryOf(plan, run));
    estimate.memory_bytes = std::max(estimate.memory_bytes, memory->bytes(of_rank.of_chunk));
    if (estimate.memory_bytes > profile.memory_bytes()) return estimate;
    TROUPE_ASSIGN_OR_RETURN(const StageTime* const time, stages.TimeOf(plan, run));
    bound.Add(time->chunks, time->outside_schedule);
    estimate.seconds_at_least = bound.seconds();
    if (estimate.seconds_at_least >= too_slow_seconds) return estimate;
    times.push_back(*time);
  }
  TROUPE_ASSIGN_OR_RETURN(estimate.time, StepTimeOf(plan, schedule, peak, times));
  return estimate;
}

}  // namespace troupe
