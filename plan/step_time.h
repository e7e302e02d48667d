// How long a step of a plan takes on devices of a profile: each operation at the rate of products
// or of memory, whichever is slower, each collective at the rate of the links that its group spans,
// the schedule simulated with what comes of it. What is begun before it is waited for costs what
// computation in between leaves over, unless the profile's transfers need its cores. Pure.
#ifndef TROUPE_PLAN_STEP_TIME_H_
#define TROUPE_PLAN_STEP_TIME_H_

#include <vector>

#include "base/status.h"
#include "model/program/program.h"
#include "plan/schedules/simulator.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StepTime {
  double seconds = 0;
  // Of the rank that has most of it:
  double compute_seconds = 0;
  double communication_seconds = 0;  // that computation does not hide
  double bubble_ratio = 0;  // of the schedule at these costs
  double mfu = 0;           // model FLOPs over seconds × ranks × the peak of the compute dtype
};

// INVALID_ARGUMENT where the profile has no rate for the job's compute dtype. REQUIRES: `plan` is
// one of `spec`, whose defaults are filled in; `profile` is one that ParseDeviceProfile returns.
StatusOr<StepTime> EstimateStepTime(const v1::JobSpec& spec, const v1::Plan& plan,
                                    const v1::DeviceProfile& profile);

// The same by stages, for who plans many layouts: stages of one kind take one time.

struct StageTime {
  // Of the rank, ascending: seconds of F, I and W with its sends. Where its schedule runs B alone, I and W are what B
  // takes together.
  std::vector<ActionCosts> chunks;
  double outside_schedule = 0;      // once a step: gathers, reductions, update
  double compute = 0;               // of all that the rank does in a step
  double communication = 0;
};

// The peak of the job's compute dtype. INVALID_ARGUMENT where the profile has none.
StatusOr<double> PeakFor(const v1::JobSpec& spec, const v1::DeviceProfile& profile);

// How a rank runs its program.
struct StageRun {
  int pipe_rank = 0;
  int microbatches = 1;         // of a step
  bool split_backward = false;  // I and W run apart somewhere
};

// Of such a rank, whose program is BuildStage's (plan/stage_cost.h). REQUIRES: `plan` has mesh and chunks.
StageTime TimeOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile,
                      double flops_per_second, const StageRun& run, const model::Program& program);

// Of every pipe rank, as `schedule` has it run. REQUIRES: `plan` has mesh, chunks and buckets, the chunks lie where the
// schedule has them.
StatusOr<std::vector<StageTime>> TimesOfStages(const v1::JobSpec& spec, const v1::Plan& plan,
                                               const Schedule& schedule,
                                               const v1::DeviceProfile& profile,
                                               double flops_per_second);

// F, I and W by chunk of the model; `stages` by pipe rank.
std::vector<ActionCosts> CostsByChunk(const v1::Plan& plan, const std::vector<StageTime>& stages);

// Of the whole; `stages` by pipe rank. REQUIRES: `plan` has mesh, chunks and FLOPs.
StatusOr<StepTime> StepTimeOf(const v1::Plan& plan, const Schedule& schedule,
                              double flops_per_second, const std::vector<StageTime>& stages);

}  // namespace troupe

#endif  // TROUPE_PLAN_STEP_TIME_H_
