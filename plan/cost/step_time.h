// Estimates the time of a plan's step on devices of a profile. Each operation runs at the rate of
// matmuls or of memory, whichever is slower; each collective runs at the rate of the links that its
// group spans; the schedule is simulated with the resulting costs. An asynchronous operation costs
// only the time that the computation before its wait does not hide, unless the profile's transfers
// need the computing cores. Pure.
#ifndef TROUPE_PLAN_COST_STEP_TIME_H_
#define TROUPE_PLAN_COST_STEP_TIME_H_

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
  // The next two are those of the rank with the largest value.
  double compute_seconds = 0;
  double communication_seconds = 0;  // not hidden by computation
  double bubble_ratio = 0;           // bubble of the schedule at these costs
  double mfu = 0;  // model FLOPs over seconds × ranks × the peak of the compute dtype
};

// INVALID_ARGUMENT where the profile has no rate for the job's compute dtype. REQUIRES: `plan` is a
// plan of `spec`, whose defaults are filled in; `profile` was returned by ParseDeviceProfile.
StatusOr<StepTime> EstimateStepTime(const v1::JobSpec& spec, const v1::Plan& plan,
                                    const v1::DeviceProfile& profile);

// The functions below do the same by stage, for callers that plan many layouts: stages of the same
// kind take the same time.

struct StageTime {
  // Seconds of F, I and W with its sends, by chunk of the rank, ascending. Where the schedule runs
  // B alone, I and W together are the seconds of B.
  std::vector<ActionCosts> chunks;
  double outside_schedule = 0;  // once per step: gathers, reductions, update
  double compute = 0;           // all computation of the rank in a step
  double communication = 0;
};

// The peak FLOPs per second of the job's compute dtype. INVALID_ARGUMENT where the profile has
// none.
StatusOr<double> PeakFor(const v1::JobSpec& spec, const v1::DeviceProfile& profile);

// How a rank runs its program.
struct StageRun {
  int pipe_rank = 0;
  int microbatches = 1;         // per step
  bool split_backward = false;  // some action runs I and W apart
};

// The times of a rank that runs as `run` says; `program` is BuildStage's (plan/cost/stage_cost.h).
// REQUIRES: `plan` has mesh and chunks.
StageTime TimeOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile,
                      double flops_per_second, const StageRun& run, const model::Program& program);

// The times of every pipe rank under `schedule`. REQUIRES: `plan` has mesh, chunks and buckets, and
// its chunks are on the ranks that the schedule gives them.
StatusOr<std::vector<StageTime>> TimesOfStages(const v1::JobSpec& spec, const v1::Plan& plan,
                                               const Schedule& schedule,
                                               const v1::DeviceProfile& profile,
                                               double flops_per_second);

// The costs of F, I and W by chunk of the model; `stages` is indexed by pipe rank.
std::vector<ActionCosts> CostsByChunk(const v1::Plan& plan, const std::vector<StageTime>& stages);

// Returns the time of a step of the whole job; `stages` is indexed by pipe rank. REQUIRES: `plan`
// has mesh, chunks and FLOPs.
StatusOr<StepTime> StepTimeOf(const v1::Plan& plan, const Schedule& schedule,
                              double flops_per_second, const std::vector<StageTime>& stages);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_STEP_TIME_H_
