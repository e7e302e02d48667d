// From what a management library tells of a device to what is done about it. Pure: time comes in.
#ifndef TROUPE_WORKER_HEALTH_DEVICE_HEALTH_H_
#define TROUPE_WORKER_HEALTH_DEVICE_HEALTH_H_

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "worker/health/device_sample.h"

namespace troupe {

// From good to bad.
enum class Health {
  kHealthy,
  kDegraded,     // goes on: slower, or due for a reset
  kReplaceRank,  // the process on it cannot be relied on; the device can
  kCondemned,    // neither can: nothing runs on it until the daemon begins anew
};

struct Verdict {
  Health health = Health::kHealthy;
  std::string cause;  // "Xid 79 (GPU has fallen off the bus)"; empty for kHealthy
};

// What is known of one device from one judgement to the next.
struct DeviceHistory {
  std::optional<uint64_t> uncorrected_errors;     // of the last sample that told
  std::optional<MonotonicTime> replaced_at;       // the last verdict kReplaceRank
  std::optional<MonotonicTime> throttled_since;   // without a break
  std::string condemned;                          // why; empty: it is not
};

// One failure of a device tells of itself several times: Xids of each engine, counters, what follows
// from the end of the process. What comes within so long after the verdict that replaces a process
// belongs to it; a process that fails so soon again is told so by CUDA.
inline constexpr Duration kSameFailure = std::chrono::seconds(5);
// Clocks drop for a moment with changes of load; from so long on they cost speed.
inline constexpr Duration kThrottledLimit = std::chrono::seconds(10);

// Judges `sample` and the `events` since the last judgement, and remembers in `history` what the next
// one needs. A device is condemned once, with the first cause there was: later judgements repeat it.
// Causes of the same weight are joined. The first sample's error count is where counting begins.
Verdict JudgeDevice(const DeviceSample& sample, std::span<const DeviceEvent> events,
                    MonotonicTime now, DeviceHistory* history);

}  // namespace troupe

#endif  // TROUPE_WORKER_HEALTH_DEVICE_HEALTH_H_
