// The effect of a device fault on the rank of that device. Part of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_DEVICE_FAULT_H_
#define TROUPE_WORKER_SESSION_DEVICE_FAULT_H_

#include "worker/session/effect.h"
#include "worker/session/event.h"
#include "worker/session/state.h"

namespace troupe::session {

// Reports at once that the device's rank has failed, because its process may not be killable while
// the driver hangs, and kills the process; starts another in its place unless the device is
// condemned. A process that is still starting has not used the device and stays. Has no effect on a
// device that is already condemned.
void OnDeviceFault(State& state, const DeviceFault& fault, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_DEVICE_FAULT_H_
