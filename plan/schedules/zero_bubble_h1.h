// ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"): the memory of 1F1B, and a third of
// its bubble where F = I = W, because weight gradients are delayed until nothing else can run: rank
// r begins with them after r input gradients. Any number of chunks per rank, placed as in
// Interleaved 1F1B. Idle time per rank is (P-1)(F+B-2W)/V; every rank keeps V·P chunks live where M
// >= 2P.
#ifndef TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_H1_H_
#define TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_H1_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: every number of `shape` is at least 1, and InterleavedOrder::HoldsFor(shape).
Schedule ZeroBubbleH1(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_H1_H_
