// The health of a device, by its faults and its speed.
#ifndef TROUPE_WORKER_DEVICES_HEALTH_H_
#define TROUPE_WORKER_DEVICES_HEALTH_H_

namespace troupe {

// Ordered from good to bad.
enum class Health {
  kHealthy,
  kDegraded,     // keeps running: slower, or due for a reset
  kReplaceRank,  // the process on it is unreliable; the device is not
  kCondemned,    // both are unreliable: nothing runs on it until the daemon restarts
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_HEALTH_H_
