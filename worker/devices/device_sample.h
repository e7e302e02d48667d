// A management library's report on one device: a sample of its sensors and counters, and its
// events. Plain values that the library (worker/devices/nvml.h) produces and that are judged
// (worker/devices/device_health.h) or counted (worker/devices/device_metrics.h).
#ifndef TROUPE_WORKER_DEVICES_DEVICE_SAMPLE_H_
#define TROUPE_WORKER_DEVICES_DEVICE_SAMPLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe {

// The reasons for which clocks are reduced: bits of a mask.
enum ThrottleReason : uint32_t {
  kThrottlePowerCap = 1,          // device is at its power limit: usual under load
  kThrottleSyncBoost = 2,         // another device of its boost group is throttled
  kThrottleSlowdown = 4,          // hardware halves the clocks: heat, power or power brake
  kThrottleThermal = 8,           // driver keeps the temperature below its limit
  kThrottleHardwareThermal = 16,  // hardware halves the clocks because of heat
  kThrottlePowerBrake = 32,       // requested by the power supply
};
struct ThrottleReasonName {
  ThrottleReason reason;
  const char* name;  // label value of the metric
};
std::span<const ThrottleReasonName> AllThrottleReasons();

// The action that would restore the device, according to the driver.
enum class RecoveryAction { kNone, kReset, kReboot, kDrainPeers, kDrainAndReset, kOther };

struct DeviceSample {
  // Values that the device does not report are absent.
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> utilization;  // fraction of time in which a kernel ran
  std::optional<double> clock_hertz;  // clock of the multiprocessors
  std::optional<uint64_t> memory_used_bytes;
  // Memory errors since the driver was loaded.
  std::optional<uint64_t> corrected_errors;
  std::optional<uint64_t> uncorrected_errors;
  uint32_t throttle_reasons = 0;  // bits of ThrottleReason
  RecoveryAction recovery_action = RecoveryAction::kNone;
  std::string lost;  // the error that made the device unreachable; empty: it is reachable
};

struct DeviceEvent {
  enum class Kind {
    kXid,             // the driver's error report
    kDoubleBitError,  // an uncorrectable memory error
  };
  Kind kind = Kind::kXid;
  uint64_t xid = 0;  // if kXid
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_DEVICE_SAMPLE_H_
