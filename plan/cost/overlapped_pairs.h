// Decides whether the two actions of a schedule's overlapped pairs run as one. Pure.
#ifndef TROUPE_PLAN_COST_OVERLAPPED_PAIRS_H_
#define TROUPE_PLAN_COST_OVERLAPPED_PAIRS_H_

#include <string>

#include "plan/schedules/schedule.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

bool HasPairs(const Schedule& schedule);

// Whether F and the backward of each overlapped pair are interleaved (model/pair_order.h). They are
// if the schedule has pairs and a stage communicates within them, over tensor, context or expert,
// so that the other half can hide it. A pair with nothing to hide runs one action after the other:
// the output of F is then sent earlier.
bool InterleavesPairs(const Schedule& schedule, const v1::MeshDegrees& mesh);

// A line on how the pairs of `plan` run and why; empty where its schedule has none.
std::string PairsLine(const v1::Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PLAN_COST_OVERLAPPED_PAIRS_H_
