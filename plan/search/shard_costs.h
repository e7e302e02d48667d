// The least time and memory that the parameters of a chunk take on one rank beyond its blocks'
// operations: their state, and the gathers, reductions and updates of the ZeRO stage. Computed from
// the number of parameters. Pure.
#ifndef TROUPE_PLAN_SEARCH_SHARD_COSTS_H_
#define TROUPE_PLAN_SEARCH_SHARD_COSTS_H_

#include <cstdint>

#include "model/optimizers/optimizer_bytes.h"
#include "plan/search/block_costs.h"
#include "plan/search/work.h"
#include "plan/validate/decoded_job.h"

namespace troupe {

// The parameters of a chunk.
struct ShardedElements {
  double blocks = 0, embedding = 0, head = 0;
  double tensors = 0;  // tensors in the blocks
};

class ShardCosts {
 public:
  // Keeps a reference to `seconds`. REQUIRES: ValidateJobSpec accepts the job.
  ShardCosts(const DecodedJob& job, const LeastSeconds& seconds);

  // Bytes of parameters, copies, gradients and optimizer states.
  double StateBytes(double elements) const;

  // Adds the work of a microbatch to `chunk`, and returns that of the ends of a step: it overlaps
  // at best with the first forward and with the last backward.
  struct Ends {
    Work before, after;
  };
  Ends Add(const ShardedElements& of, ChunkCosts* chunk) const;

  // Seconds of the optimizer.
  double UpdateSeconds(double elements) const;

 private:
  // The use of links by a collective over the shards, or over those of a run; the rest of it across
  // runs.
  LinkUse OverShards(double elements, double tensors, double bytes) const;
  LinkUse AcrossRuns(double elements, double tensors, double bytes) const;

  const LeastSeconds& seconds_;
  int64_t shard_span_ = 0, runs_span_ = 0, replica_span_ = 0;
  double shards_ = 1, replicas_ = 1, expert_ = 1;
  double element_ = 4;  // bytes of an element of the compute dtype
  double held_ = 4;     // bytes of an element of a gathered matrix (mixed_precision.param)
  double reduced_ = 4;  // bytes of an element of a gradient that is sent
  model::OptimizerBytes optimizer_;
  int zero_stage_ = 0;  // 2 where parameters are kept once gathered
  int run_ = 0;         // plan/validate/reshard.h
  bool has_experts_ = false;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SEARCH_SHARD_COSTS_H_
