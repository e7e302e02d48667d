// 1F1B (PipeDream-flush): each rank runs as many forwards ahead as there are ranks after it, then
// alternates. One chunk per rank; it supports every number of microbatches of at least 1. Idle time
// per rank: (P-1)(F+B). Rank r keeps at most min(M, P-r) microbatches live.
#ifndef TROUPE_PLAN_SCHEDULES_ONE_FORWARD_ONE_BACKWARD_H_
#define TROUPE_PLAN_SCHEDULES_ONE_FORWARD_ONE_BACKWARD_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: stages >= 1, microbatches >= 1.
Schedule OneForwardOneBackward(int stages, int microbatches);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_ONE_FORWARD_ONE_BACKWARD_H_
