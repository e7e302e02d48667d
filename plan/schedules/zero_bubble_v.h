// ZBV (Qi et al. 2023): two chunks per rank, placed as a V, and at most 2P live chunks (the memory
// of 1F1B). Where F = I = W and M >= 2P a rank idles for P-1 forwards of a chunk, and only because
// all ranks end the step together.
//
// It supports every number of microbatches: with fewer than 2P-1 it is the schedule for 2P-1
// without the actions of the microbatches that do not exist.
#ifndef TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_V_H_
#define TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_V_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: stages >= 1, microbatches >= 1.
Schedule ZeroBubbleV(int stages, int microbatches);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_V_H_
