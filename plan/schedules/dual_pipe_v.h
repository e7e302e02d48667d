// DualPipeV (DeepSeek-AI; the half of DualPipe that needs no second copy of the parameters). Each
// rank has two chunks, placed as a V. In the steady state the forward of one chunk overlaps the
// backward of the other, so that the computation of one hides the communication of the other. At
// most 2P+1 chunks are live. Idle time per rank is (P-1)(F&B + B - 3W) where an overlapped pair is
// one action of cost F&B; where the output of the forward is sent before the backward begins, as on
// one processor, it is as small as ZBV's.
#ifndef TROUPE_PLAN_SCHEDULES_DUAL_PIPE_V_H_
#define TROUPE_PLAN_SCHEDULES_DUAL_PIPE_V_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: stages >= 1, microbatches >= 2 · stages.
Schedule DualPipeV(int stages, int microbatches);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_DUAL_PIPE_V_H_
