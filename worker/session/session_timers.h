// The timers of the session machine, as tables: a new one is one row. Part of
// worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_SESSION_TIMERS_H_
#define TROUPE_WORKER_SESSION_SESSION_TIMERS_H_

#include "base/clock.h"
#include "worker/session/effect.h"
#include "worker/session/state.h"

namespace troupe::session {

// Acts for each timer that is due. Call at the end of each event. REQUIRES: the daemon has not
// ended.
void OnSessionTime(State& state, MonotonicTime now, Effects& effects);

// When the next timer is due.
MonotonicTime NextSessionTime(const State& state);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_SESSION_TIMERS_H_
