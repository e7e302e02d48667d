// The session without its stream: when it dials again, what it logs of it, and how it takes leave.
// Part of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_LOST_LINK_H_
#define TROUPE_WORKER_SESSION_LOST_LINK_H_

#include <string>

#include "base/clock.h"
#include "worker/session/effect.h"
#include "worker/session/state.h"

namespace troupe::session {

// The longest pause between dials, which the detection time shortens.
inline constexpr Duration kLongestDialBackoff = std::chrono::seconds(1);
// The same for a worker without ranks that the coordinator refuses, for example because its name is
// in use.
inline constexpr Duration kLongestRefusedBackoff = std::chrono::seconds(10);

// The same for a worker, with ranks or without, whose access the coordinator refuses. Each refusal
// is a record of the audit log, and a mended certificate is to be used soon.
inline constexpr Duration kLongestAccessBackoff = std::chrono::seconds(4);

// The stream is gone; the next dial follows after a pause that grows with each failure.
void GoDown(State& state, MonotonicTime now, Duration longest = kLongestDialBackoff);
// The same after a refusal of access.
void GoDownWithoutAccess(State& state, MonotonicTime now);

// Logs why there is no stream: each reason at once, and again at intervals while it lasts.
void NoteReason(State& state, std::string text, MonotonicTime now, Effects& effects);

// Ends the daemon with exit code 0.
void EndOnRequest(State& state, Effects& effects);

// Sends the goodbye, or ends the daemon at once if there is no stream for it.
void OnLeave(State& state, MonotonicTime now, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_LOST_LINK_H_
