// Memory and traffic of one pipe rank of a plan, read off its stage program and memory plan: the program that runs is
// the one that is counted. Pure.
#ifndef TROUPE_PLAN_STAGE_COST_H_
#define TROUPE_PLAN_STAGE_COST_H_

#include <vector>

#include "base/status.h"
#include "model/program/program.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

struct StageCost {
  v1::RankMemory memory;
  std::vector<v1::AxisTraffic> traffic;  // sent by one rank in a step; by axis and purpose
  std::vector<v1::AxisReplication> replication;  // plan/replication.h
  double recomputed_flops = 0;           // of one rank in a step, in the convention of model FLOPs
};

// The program of the first of the ranks at `pipe_rank`, whose slices are the largest; where whole matrices are sharded, of
// the first of those that have most of them. INVALID_ARGUMENT where it cannot
// be built. REQUIRES: `plan` has mesh, chunks and bucket.
StatusOr<model::Program> BuildStage(const v1::JobSpec& spec, const v1::Plan& plan, int pipe_rank);

// Of the ranks at `pipe_rank`, whose program is BuildStage's. INVALID_ARGUMENT where the plan's schedule does not parse.
StatusOr<StageCost> CostOfStage(const v1::JobSpec& spec, const v1::Plan& plan, int pipe_rank,
                                const model::Program& program);

// What a rank needs, however many microbatches its schedule keeps alive.
struct StageMemory {
  int64_t fixed_bytes = 0;           // state, temporaries, scratch, snapshot or a GPU's reserve
  std::vector<int64_t> saved_bytes;  // of each of its chunks, one microbatch's
  // The total_bytes of CostOfStage's memory where `live` microbatches of each chunk are alive.
  int64_t bytes(const std::vector<int>& live) const;
};

// `split_backward`: I and W run apart somewhere. REQUIRES: `program` is BuildStage's.
StageMemory MemoryOfStage(const v1::JobSpec& spec, const v1::Plan& plan,
                          const model::Program& program, bool split_backward);

}  // namespace troupe

#endif  // TROUPE_PLAN_STAGE_COST_H_
