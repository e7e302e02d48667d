// GPipe: all forwards, then all backwards, with one chunk per rank. It supports every number of
// microbatches; all of them are live at once. Idle time per rank: (P-1)(F+B).
#ifndef TROUPE_PLAN_SCHEDULES_GPIPE_H_
#define TROUPE_PLAN_SCHEDULES_GPIPE_H_

#include "plan/schedules/schedule.h"

namespace troupe {

// REQUIRES: stages >= 1, microbatches >= 1.
Schedule GPipe(int stages, int microbatches);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_GPIPE_H_
