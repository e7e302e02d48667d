// The end of a daemon that drains: its jobs move to other workers, and it ends when it has no ranks
// left, or shortly before its deadline with those that are left.
#ifndef TROUPE_WORKER_SESSION_DRAIN_H_
#define TROUPE_WORKER_SESSION_DRAIN_H_

#include <optional>

#include "base/clock.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/effect.h"
#include "worker/session/event.h"
#include "worker/session/state.h"

namespace troupe::session {

// Notes the request and reports it to the coordinator. No effect if the daemon already ends as
// early for another one.
void OnDrain(State& state, const Drain& drain, MonotonicTime now, Effects& effects);

// The message about state.drain, for a stream. REQUIRES: there is one.
v1::Draining DrainingOf(const State& state, MonotonicTime now);

// Sends that message if the daemon drains and has a stream.
void ReportDrain(State& state, MonotonicTime now, Effects& effects);

// When the daemon that drains is to leave: at its deadline or, without ranks, at once. Absent: it
// does not drain.
std::optional<MonotonicTime> DrainEnd(const State& state);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_DRAIN_H_
