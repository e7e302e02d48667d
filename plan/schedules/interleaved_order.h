// The order in which a rank with several chunks processes (chunk, microbatch) pairs in the
// interleaved schedules. It has rounds of G = M / max(1, floor(M/P)) microbatches; a round runs all
// G on the first chunk, then all G on the next. The backward pass processes the chunks in reverse.
// (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters".)
#ifndef TROUPE_PLAN_SCHEDULES_INTERLEAVED_ORDER_H_
#define TROUPE_PLAN_SCHEDULES_INTERLEAVED_ORDER_H_

#include "plan/schedules/schedule.h"

namespace troupe {

class InterleavedOrder {
 public:
  // REQUIRES: HoldsFor(shape).
  InterleavedOrder(const PipelineShape& shape, int rank) : shape_(shape), rank_(rank) {}

  // The round length G. REQUIRES: shape.stages >= 1.
  static int RoundOf(const PipelineShape& shape);
  // Whether all rounds have equal length: floor(M/P), or 1 if that is 0, divides M. One chunk needs
  // no rounds.
  static bool HoldsFor(const PipelineShape& shape);
  // ScheduleRecord::check of the interleaved schedules: whether HoldsFor(shape).
  static Status Check(const PipelineShape& shape);

  // The number of forwards of the rank in a step, which is also the number of backwards.
  int count() const { return shape_.microbatches * shape_.chunks_per_stage; }
  // The k-th forward and the k-th backward. REQUIRES: 0 <= k < count().
  Action Forward(int k) const;
  Action Backward(int k, ActionKind kind) const;

 private:
  Action At(int k, ActionKind kind, bool reversed) const;

  PipelineShape shape_;
  int rank_;
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_INTERLEAVED_ORDER_H_
