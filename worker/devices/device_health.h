// Decides what to do about a device from what a management library reports of it. Pure: the caller
// passes the time.
#ifndef TROUPE_WORKER_DEVICES_DEVICE_HEALTH_H_
#define TROUPE_WORKER_DEVICES_DEVICE_HEALTH_H_

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "worker/devices/device_sample.h"
#include "worker/devices/health.h"

namespace troupe {

struct Verdict {
  Health health = Health::kHealthy;
  std::string cause;  // "Xid 79 (GPU has fallen off the bus)"; empty for kHealthy
};

// State of one device that is kept between judgements.
struct DeviceHistory {
  std::optional<uint64_t> uncorrected_errors;    // in the last sample that had a count
  std::optional<MonotonicTime> replaced_at;      // time of the last verdict kReplaceRank
  std::optional<MonotonicTime> throttled_since;  // start of the current uninterrupted throttling
  std::string condemned;                         // cause; empty: not condemned
};

// One failure of a device is reported several times: Xids of each engine, counters, consequences of
// the end of the process. Reports within this time after the verdict that replaces a process belong
// to that failure; CUDA reports it to a process that fails again so soon.
inline constexpr Duration kSameFailure = std::chrono::seconds(5);
// Clocks drop for a moment when the load changes; throttling that lasts this long costs speed.
inline constexpr Duration kThrottledLimit = std::chrono::seconds(10);

// Judges `sample` and the `events` since the last judgement, and updates `history` for the next
// one. A condemned device keeps its first cause: later judgements repeat it. Causes of the same
// severity are joined. Errors are counted from the first sample on.
Verdict JudgeDevice(const DeviceSample& sample, std::span<const DeviceEvent> events,
                    MonotonicTime now, DeviceHistory* history);

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_DEVICE_HEALTH_H_
