// The layout that a job was submitted for and the one that it runs on: the same, unless it goes on
// with fewer ranks (fault_tolerance.allow_layout_change).
#ifndef TROUPE_COORDINATOR_RUNNING_LAYOUT_H_
#define TROUPE_COORDINATOR_RUNNING_LAYOUT_H_

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// The plan of the submitted layout: placed and frozen as it ran last, or not yet placed.
const v1::Plan& SubmittedPlan(const Job& job);

// The spec that goes with job.plan: the submitted one, on the running layout.
v1::JobSpec RunningSpec(const Job& job);

// `smaller` is the spec on fewer ranks: from now on the running layout, recorded in the turn's
// writes. The caller starts a group on its plan.
void TakeSmallerLayout(const v1::JobSpec& smaller, Job& job, Turn& turn);

// The running layout is `smaller` than the submitted one from now on, recorded likewise. The caller
// replaces job.plan.
void KeepSmallerLayout(v1::SmallerLayout smaller, Job& job, Turn& turn);

// The running layout is the submitted one from now on. The caller replaces job.plan.
void ForgetSmallerLayout(Job& job, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RUNNING_LAYOUT_H_
