// What the session machine says to the coordinator, and what it says again on a new stream. Part of
// worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_OUTBOX_H_
#define TROUPE_WORKER_SESSION_OUTBOX_H_

#include "worker/session/session.h"

namespace troupe::session {

// Sends if there is a stream; else the message is dropped, because its matter is kept elsewhere in
// the state.
void Send(State& state, Effects& effects, v1::WorkerMessage message);

// Sends what must be known even if it happens while there is no stream.
void SendOrKeep(State& state, Effects& effects, v1::WorkerMessage message);

// The cores of a rank that has begun; nothing where it is not bound to any.
void SendCores(State& state, Effects& effects, const std::string& job, uint64_t epoch, int rank,
               const v1::CoreSet& cores);

// Rank 0's reports of `group` that are not durable, then its manifests; or, where the reports are
// many, the first of them: the group notes up to which. To be called again once those are durable.
void SendReports(State& state, Group& group, Effects& effects);

// Everything that the coordinator may not have. REQUIRES: the stream has just been welcomed.
void SendAgain(State& state, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_OUTBOX_H_
