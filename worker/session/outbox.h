// The session machine's messages to the coordinator, and those that it resends on a new stream.
// Part of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_OUTBOX_H_
#define TROUPE_WORKER_SESSION_OUTBOX_H_

#include "worker/session/effect.h"
#include "worker/session/state.h"

namespace troupe::session {

// Sends if there is a stream; else drops the message, because its content is kept elsewhere in the
// state.
void Send(State& state, Effects& effects, v1::WorkerMessage message);

// Sends a message, or keeps it for the next stream if there is none.
void SendOrKeep(State& state, Effects& effects, v1::WorkerMessage message);

// Sends the cores of a rank that has begun; does nothing if it is not bound to cores.
void SendCores(State& state, Effects& effects, const std::string& job, uint64_t epoch, int rank,
               const v1::CoreSet& cores);

// Sends rank 0's reports of `group` that are not durable, then its manifests. If the reports are
// many, sends only the first of them, and the group records up to which; call again once those are
// durable.
void SendReports(State& state, Group& group, Effects& effects);

// Resends everything that the coordinator may not have. REQUIRES: the stream has just been
// welcomed.
void SendAgain(State& state, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_OUTBOX_H_
