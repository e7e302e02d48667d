// The time of one pipe rank in a step, from its stage program. Each operation runs at the rate of
// matmuls or of memory, whichever is slower; each collective runs at the rate of the links that its
// group spans. An asynchronous operation costs only the time that the computation before its wait
// does not hide, unless the profile's transfers need the computing cores. Pure.
#ifndef TROUPE_PLAN_COST_STAGE_TIME_H_
#define TROUPE_PLAN_COST_STAGE_TIME_H_

#include <vector>

#include "model/program/program.h"
#include "plan/schedules/simulator.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StageTime {
  // Seconds of F, I and W with its sends, by chunk of the rank, ascending. Where the schedule runs
  // B alone, I and W together are the seconds of B.
  std::vector<ActionCosts> chunks;
  double outside_schedule = 0;  // once per step: gathers, reductions, update
  double compute = 0;           // all computation of the rank in a step
  double communication = 0;
};

// The way in which a rank runs its program.
struct StageRun {
  int pipe_rank = 0;
  int microbatches = 1;         // per step
  bool split_backward = false;  // some action runs I and W apart
};

// The times of a rank that runs as `run` states. `peak`: FLOPs per second of the job's compute
// dtype. Does not read the operations of I and W, which are those of B. REQUIRES: `plan` has mesh
// and chunks; `program` is BuildStage's (plan/cost/stage_cost.h).
StageTime TimeOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile, double peak,
                      const StageRun& run, const model::Program& program);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_STAGE_TIME_H_
