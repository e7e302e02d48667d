// The events about a TroupeJob that `kubectl describe` shows. Pure.
#ifndef TROUPE_COORDINATOR_KUBERNETES_JOB_EVENTS_H_
#define TROUPE_COORDINATOR_KUBERNETES_JOB_EVENTS_H_

#include <optional>

#include "coordinator/kubernetes/reconcile.h"
#include "coordinator/kubernetes/requests.h"
#include "coordinator/kubernetes/troupe_job.h"

namespace troupe {

// Returns the event for a change of the state; absent if it is no news, as a checkpoint.
std::optional<ObjectEvent> EventOfChange(const TroupeJobStatus& former,
                                         const TroupeJobStatus& status);

// Returns the event for a job that has left workers that were draining. That may be over sooner
// than its state is read again.
ObjectEvent EventOfMove(const TroupeJobStatus& status, const JobFacts& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_JOB_EVENTS_H_
