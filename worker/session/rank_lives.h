// How ranks begin and end in the processes of the daemon's devices. Part of
// worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_RANK_LIVES_H_
#define TROUPE_WORKER_SESSION_RANK_LIVES_H_

#include "worker/session/session.h"

namespace troupe::session {

// The wait after so many failures in a row: none after none, then doubling up to `limit`.
Duration Backoff(int failures, Duration limit);

void StartDevice(State& state, int index, MonotonicTime now, Effects& effects);
// Nothing if its process does not run or is being killed already.
void Kill(State& state, int index, std::string reason, Effects& effects);

// Null where `job` is not held in this very epoch.
Group* FindGroup(State& state, const std::string& job, uint64_t epoch);

// The rank that device `index` had is gone: tells so and forgets it. REQUIRES: it has one.
void EndRank(State& state, int index, v1::RankStopped stopped, Effects& effects);

// Begins the rank that waits for device `index`, if the process is idle and there is one.
void BeginNext(State& state, int index, Effects& effects);

// The rank that waits for device `index` will not begin: it counts as crashed. REQUIRES: there is one.
void RefuseNext(State& state, int index, std::string why, Effects& effects);

void OnStartRanks(State& state, const v1::StartRanks& start, MonotonicTime now, Effects& effects);
// `message` is the envelope that the ranks get.
void OnStopRanks(State& state, const v1::StopRanks& stop, const v1::CoordinatorMessage& message,
                 MonotonicTime now, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_RANK_LIVES_H_
