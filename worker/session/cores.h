// Divides the cores of this daemon's ranks again whenever a rank of the host begins or ends. Part
// of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_CORES_H_
#define TROUPE_WORKER_SESSION_CORES_H_

#include "worker/session/effect.h"
#include "worker/session/state.h"

namespace troupe::session {

// Divides the host's cores (DivideCores) among all known ranks on it: those of this daemon, those
// that the plans of its jobs place on this host, and those that other daemons claim. Reports
// changes to ranks and coordinator, and this daemon's claims to the other daemons. Has no effect if
// Config::host_cores is empty.
void DivideHostCores(State& state, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_CORES_H_
