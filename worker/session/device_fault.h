// What a fault of a device does to the rank on it. Part of worker/session/session.h.
#ifndef TROUPE_WORKER_SESSION_DEVICE_FAULT_H_
#define TROUPE_WORKER_SESSION_DEVICE_FAULT_H_

#include "worker/session/session.h"

namespace troupe::session {

// Says at once that the device's rank has failed, for its process may be one that cannot be killed
// while the driver hangs, and kills it; another is started in its place unless the device is
// condemned. A process that is only starting has not touched the device and stays. Nothing happens to
// a device that is condemned already.
void OnDeviceFault(State& state, const DeviceFault& fault, Effects& effects);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_DEVICE_FAULT_H_
