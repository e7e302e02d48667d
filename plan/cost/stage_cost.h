// Memory and traffic of one pipe rank of a plan, computed from its stage program and memory plan.
// The counted program is the program that runs. Pure.
#ifndef TROUPE_PLAN_COST_STAGE_COST_H_
#define TROUPE_PLAN_COST_STAGE_COST_H_

#include <vector>

#include "base/status.h"
#include "model/program/program.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StageCost {
  v1::RankMemory memory;
  std::vector<v1::AxisTraffic> traffic;          // sent by one rank in a step; by axis and purpose
  std::vector<v1::AxisReplication> replication;  // plan/layout/replication.h
  double recomputed_flops = 0;                   // one rank in one step, counted like model FLOPs
};

// Builds the program of the first of the ranks at `pipe_rank`, which has the largest slices; where
// whole matrices are sharded, of the first rank among those with the most elements.
// INVALID_ARGUMENT where it cannot be built, or has an operation that the job's devices do not run,
// with the reason. `runs`: see model::BuildOptions. REQUIRES: `plan` has mesh, chunks and bucket.
StatusOr<model::Program> BuildStage(const DecodedJob& job, const v1::Plan& plan, int pipe_rank,
                                    bool runs = true);

// The cost of the ranks at `pipe_rank`. INVALID_ARGUMENT where the plan's schedule does not parse.
// REQUIRES: `program` is BuildStage's.
StatusOr<StageCost> CostOfStage(const DecodedJob& job, const v1::Plan& plan, int pipe_rank,
                                const model::Program& program);

// The memory of a rank as a function of the live microbatches of its schedule.
struct StageMemory {
  int64_t fixed_bytes = 0;           // state, temporaries, scratch, snapshot or a GPU's reserve
  std::vector<int64_t> saved_bytes;  // by chunk of the rank, for one microbatch
  // total_bytes of CostOfStage's memory where `live` microbatches of each chunk are live.
  int64_t bytes(const std::vector<int>& live) const;
};

// `split_backward`: some action runs I and W apart. REQUIRES: `program` is BuildStage's; with
// `split_backward` its I and W are filled.
StageMemory MemoryOfStage(const DecodedJob& job, const v1::Plan& plan,
                          const model::Program& program, bool split_backward);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_STAGE_COST_H_
