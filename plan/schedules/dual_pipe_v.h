// DualPipeV (DeepSeek-AI; the half of DualPipe that needs no second copy of the parameters): two chunks a rank, placed
// as a V; in its steady state the forward of one chunk overlaps the backward of the other, so that one's computation
// hides the other's communication. At most 2P+1 chunks alive. Idle per rank (P-1)(F&B + B - 3W) where an overlapped pair
// is one action of cost F&B; where the forward's output leaves before the backward begins, as on one processor, as
// little as ZBV's.
#ifndef TROUPE_PLAN_SCHEDULES_DUAL_PIPE_V_H_
#define TROUPE_PLAN_SCHEDULES_DUAL_PIPE_V_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: stages >= 1, microbatches >= 2 · stages.
Schedule DualPipeV(int stages, int microbatches);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_DUAL_PIPE_V_H_
