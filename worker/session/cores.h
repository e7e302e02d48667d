// The cores of this daemon's ranks, divided anew whenever a rank of the host begins or ends. Part
// of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_CORES_H_
#define TROUPE_WORKER_SESSION_CORES_H_

#include "worker/session/session.h"

namespace troupe::session {

// Divides the host's cores among all ranks that are known on it (DivideCores): those of this
// daemon, those that the plans of its jobs place on this host, those that other daemons claim.
// Tells ranks and coordinator what moved, and the other daemons what is claimed here. Without
// effect where Config::host_cores is empty.
void DivideHostCores(State& state, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_CORES_H_
