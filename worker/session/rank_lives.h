// Begins and ends ranks in the processes of the daemon's devices. Part of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_RANK_LIVES_H_
#define TROUPE_WORKER_SESSION_RANK_LIVES_H_

#include "worker/session/effect.h"
#include "worker/session/state.h"

namespace troupe::session {

// The wait after `failures` failures in a row: 0 after none, then doubling up to `limit`.
Duration Backoff(int failures, Duration limit);

// Whether the device's process may be started, once device.start_at has come.
bool MayStart(const Device& device);
void StartDevice(State& state, int index, MonotonicTime now, Effects& effects);
// Kills the process of device `index`. Does nothing if it does not run or is being killed already.
void Kill(State& state, int index, std::string reason, Effects& effects);

// Null if this daemon does not hold `job` in that epoch.
Group* FindGroup(State& state, const std::string& job, uint64_t epoch);

// Reports the end of the rank of device `index` and forgets the rank. REQUIRES: the device has one.
void EndRank(State& state, int index, v1::RankStopped stopped, Effects& effects);

// Begins the rank that waits for device `index`, if there is one and the process is idle.
void BeginNext(State& state, int index, Effects& effects);

// Refuses the rank that waits for device `index`; it counts as crashed. REQUIRES: there is one.
void RefuseNext(State& state, int index, std::string why, Effects& effects);

void OnStartRanks(State& state, const v1::StartRanks& start, MonotonicTime now, Effects& effects);
// `message` is the envelope that the ranks receive.
void OnStopRanks(State& state, const v1::StopRanks& stop, const v1::CoordinatorMessage& message,
                 MonotonicTime now, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_RANK_LIVES_H_
