// Workers that operators drain (DrainWorker), as `kubectl drain` does with a node: nothing more is
// placed on such a worker, its jobs move away (coordinator/job/move.h), and it stays until it is
// stopped or returned by UndrainWorker. The order is in the catalog and concerns the name: restarts
// of the worker and of the coordinator do not end it. It ends when the worker has been forgotten
// for long, because pods and machines that are gone leave names that never return. All functions
// are pure.
#ifndef TROUPE_COORDINATOR_MACHINE_DRAINED_WORKERS_H_
#define TROUPE_COORDINATOR_MACHINE_DRAINED_WORKERS_H_

#include <optional>

#include "base/clock.h"
#include "coordinator/machine/coordinator_state.h"
#include "coordinator/state/event.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Both reply with the worker. NOT_FOUND if there is no such worker; INVALID_ARGUMENT for a reason
// that is too long; RESOURCE_EXHAUSTED if there are too many orders.
void DrainWorker(const DrainWorkerCall& event, CoordinatorState& state, Turn& turn);
void UndrainWorker(const UndrainWorkerCall& event, CoordinatorState& state, Turn& turn);

// Ends the orders whose workers have been forgotten for long. Checks once a minute.
void EndForgottenDrains(CoordinatorState& state, Turn& turn);
std::optional<MonotonicTime> NextTimeToEndDrains(const CoordinatorState& state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_DRAINED_WORKERS_H_
