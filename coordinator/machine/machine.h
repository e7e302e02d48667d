// The whole coordinator as one pure state machine: fleet, queue and jobs. No clock, thread,
// randomness, file or socket is touched here; the shell (coordinator/service/server.h) and the
// simulator drive the same functions.
//
// Contract of the driver: pass one event at a time; perform the effects of an event in the order of
// the fields of Effects, and make the writes durable before any other effect; send a Tick at or
// after NextDeadline(state) when no other event is waiting. After a crash at any point, Recover
// continues from what is durable.
#ifndef TROUPE_COORDINATOR_MACHINE_MACHINE_H_
#define TROUPE_COORDINATOR_MACHINE_MACHINE_H_

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "coordinator/machine/coordinator_state.h"
#include "coordinator/state/catalog.h"
#include "coordinator/state/event.h"
#include "coordinator/state/options.h"

namespace troupe {

// The state of a coordinator that starts with the contents of `image`. `leader_epoch` is the new
// one, already durable (AdvanceLeaderEpoch). Jobs that were running wait up to the reconnect grace
// for their workers' Hello.
CoordinatorState Recover(CoordinatorOptions options, const CatalogImage& image,
                         uint64_t leader_epoch, MonotonicTime now);

Effects Step(CoordinatorState& state, const Event& event);

// When the next Tick is due; absent: never, in the present state.
std::optional<MonotonicTime> NextDeadline(const CoordinatorState& state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_MACHINE_H_
