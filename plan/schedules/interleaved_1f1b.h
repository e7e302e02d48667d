// Interleaved 1F1B (Megatron-LM): V chunks a rank, chunk c on rank c mod P, so that the bubble is V times smaller than
// 1F1B's: idle per rank (P-1)(F+B)/V, F and B being those of all the rank's chunks. Rank 0 keeps at most
// (V-1)P + 2(P-1) + 1 chunks alive where M >= 2P. With one chunk it is not 1F1B: its warm-up is longer.
#ifndef TROUPE_PLAN_SCHEDULES_INTERLEAVED_1F1B_H_
#define TROUPE_PLAN_SCHEDULES_INTERLEAVED_1F1B_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: every number of `shape` is at least 1, and InterleavedOrder::HoldsFor(shape).
Schedule Interleaved1F1B(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_INTERLEAVED_1F1B_H_
