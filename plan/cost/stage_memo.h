// The memory and the times of a job's stages, of which those of equal stages are computed once.
//
// A planner compares many plans of one job, and the ranks of a pipeline are mostly equal. Two
// stages are of one kind if their chunks hold the same blocks, have the same neighbours on their
// rank, and begin at the same position in an island or divide islands; then their programs and
// times are equal. The memory that it takes is bounded. Not thread-safe.
#ifndef TROUPE_PLAN_COST_STAGE_MEMO_H_
#define TROUPE_PLAN_COST_STAGE_MEMO_H_

#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "model/program/program.h"
#include "plan/cost/stage_cost.h"
#include "plan/cost/stage_time.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The peak FLOPs per second of the job's compute dtype. INVALID_ARGUMENT, a violation of
// training.compute_dtype, where the profile has none.
StatusOr<double> PeakFor(const v1::TrainingSpec& training, const v1::DeviceProfile& profile);

class StageMemo {
 public:
  // Keeps references to both.
  StageMemo(const DecodedJob& job, const v1::DeviceProfile& profile)
      : job_(job), profile_(profile), peak_(PeakFor(job.spec.training(), profile)) {}

  const DecodedJob& job() const { return job_; }
  const v1::DeviceProfile& profile() const { return profile_; }
  const StatusOr<double>& peak() const { return peak_; }

  // The memory and the times of the ranks at `run.pipe_rank`. The pointers are valid until the next
  // call. INVALID_ARGUMENT where the stage cannot be built or, for times, where the profile has no
  // rate for the job's compute dtype. REQUIRES: `plan` has mesh, chunks and buckets, and is of the
  // job; its mesh, and the microbatches of `run`, are those of all calls before.
  StatusOr<const StageMemory*> MemoryOf(const v1::Plan& plan, const StageRun& run);
  StatusOr<const StageTime*> TimeOf(const v1::Plan& plan, const StageRun& run);

 private:
  struct Stage {
    model::Program program;
    bool is_split = false;  // I and W are filled
    // By whether the schedule runs I and W apart; computed at the first request.
    std::optional<StageMemory> memory[2];
    std::optional<StageTime> time[2];
  };

  StatusOr<Stage*> StageOf(const v1::Plan& plan, const StageRun& run);

  const DecodedJob& job_;
  const v1::DeviceProfile& profile_;
  const StatusOr<double> peak_;
  std::map<std::string, Stage> stages_;  // by kind
  size_t values_ = 0;                    // values in all programs
};

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_STAGE_MEMO_H_
