// The worker daemon as one pure state machine: its stream to the coordinator, its rank processes,
// and the data it keeps until the coordinator has them. It uses no clock, thread, socket or
// process; the shell (worker/daemon/session_actor.h) and simulations drive the same Step.
//
// Invariants:
// - A message with a lower leader epoch than the highest seen, or a lower group epoch than the
//   job's highest, has no effect.
// - A device has at most one rank. A rank of a newer group epoch starts only after the process of
//   the older one has stopped.
// - Rank 0's step reports, votes and manifests are kept until acknowledged and resent on every new
//   stream, as are each rank's reports of its start and failure. Receivers treat duplicates as one.
// - A rank that was ordered to stop is killed when its limit has passed. No other action or
//   omission of a coordinator kills a rank: without a coordinator, ranks run to the end of their
//   tickets and check the tickets' lifetimes themselves.
// - No rank begins and no process starts on a condemned device.
// - Each rank runs on the cores that DivideCores gives it among all ranks known on the host.
#ifndef TROUPE_WORKER_SESSION_SESSION_H_
#define TROUPE_WORKER_SESSION_SESSION_H_

#include "base/clock.h"
#include "worker/session/effect.h"
#include "worker/session/event.h"
#include "worker/session/state.h"

namespace troupe::session {

// The first Tick starts everything: processes of all devices, and the first dial.
State MakeState(Config config, MonotonicTime now);

Effects Step(State& state, const Event& event);

// Returns when the next Tick is due.
MonotonicTime NextDeadline(const State& state);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_SESSION_H_
