// Arithmetic on the figures of steps (StepFigures in proto/troupe/v1/step.proto). It covers every
// field of the message. Pure.
#ifndef TROUPE_COORDINATOR_HISTORY_STEP_FIGURES_H_
#define TROUPE_COORDINATOR_HISTORY_STEP_FIGURES_H_

#include <cstdint>

#include "troupe/v1/step.pb.h"

namespace troupe {

// Adds each figure of `step` to that of `sums`; communication is added by purpose.
void AddFigures(const v1::StepFigures& step, v1::StepFigures* sums);

// Returns each figure of `sums` divided by `count`. REQUIRES: count > 0.
v1::StepFigures MeanFigures(const v1::StepFigures& sums, int64_t count);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HISTORY_STEP_FIGURES_H_
