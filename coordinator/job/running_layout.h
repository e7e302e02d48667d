// The submitted and the running layout of a job. They are the same unless the job continues with
// fewer ranks (fault_tolerance.allow_layout_change).
#ifndef TROUPE_COORDINATOR_JOB_RUNNING_LAYOUT_H_
#define TROUPE_COORDINATOR_JOB_RUNNING_LAYOUT_H_

#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// The plan of the submitted layout: placed and frozen as it ran last, or not yet placed.
const v1::Plan& SubmittedPlan(const Job& job);

// The spec that goes with job.plan: the submitted spec on the running layout.
v1::JobSpec RunningSpec(const Job& job);

// Makes `smaller`, the spec on fewer ranks, the running layout and records it in the turn's writes.
// The caller starts a group on its plan.
void UseSmallerLayout(const v1::JobSpec& smaller, Job& job, Turn& turn);

// Marks the running layout as `smaller` than the submitted one and records it in the turn's writes.
// The caller replaces job.plan.
void RecordSmallerLayout(v1::SmallerLayout smaller, Job& job, Turn& turn);

// Makes the submitted layout the running one and records it in the turn's writes. The caller
// replaces job.plan.
void ForgetSmallerLayout(Job& job, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_RUNNING_LAYOUT_H_
