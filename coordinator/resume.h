// A job that has ended and goes on.
#ifndef TROUPE_COORDINATOR_RESUME_H_
#define TROUPE_COORDINATOR_RESUME_H_

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// Queues a job that has ended again, with `overrides` merged over its spec, on the layout that this
// asks for, whatever smaller one it ran on. Of what checkpoint/ keeps and the data order nothing may
// change (plan/kept_keys.h).
Status ResumeJob(Job& job, const v1::JobSpec& overrides, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_RESUME_H_
