// Interleaved 1F1B (Megatron-LM): V chunks per rank, chunk c on rank c mod P, which makes the
// bubble V times smaller than that of 1F1B. Idle time per rank is (P-1)(F+B)/V, where F and B are
// those of all the rank's chunks. Rank 0 keeps at most (V-1)P + 2(P-1) + 1 chunks live where M >=
// 2P. With one chunk it differs from 1F1B: its warm-up is longer.
#ifndef TROUPE_PLAN_SCHEDULES_INTERLEAVED_1F1B_H_
#define TROUPE_PLAN_SCHEDULES_INTERLEAVED_1F1B_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: every number of `shape` is at least 1, and InterleavedOrder::HoldsFor(shape).
Schedule Interleaved1F1B(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_INTERLEAVED_1F1B_H_
