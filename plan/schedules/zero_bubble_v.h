// ZBV (Qi et al. 2023): two chunks a rank, placed as a V, at most 2P chunks alive (the memory of 1F1B). Where F = I = W
// and M >= 2P a rank idles for (P-1) forwards of a chunk, and only because all ranks end the step together.
//
// Works for every number of microbatches: one below 2P-1 is the schedule of 2P-1 without the actions of the microbatches
// that are not there.
#ifndef TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_V_H_
#define TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_V_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: stages >= 1, microbatches >= 1.
Schedule ZeroBubbleV(int stages, int microbatches);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_ZERO_BUBBLE_V_H_
