// What a management library tells of one device: a sample of its sensors and counters, and what
// happened to it. Plain values between the library (worker/health/nvml.h) and those who judge them
// (worker/health/device_health.h) or count them (worker/health/device_metrics.h).
#ifndef TROUPE_WORKER_HEALTH_DEVICE_SAMPLE_H_
#define TROUPE_WORKER_HEALTH_DEVICE_SAMPLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe {

// Why clocks are held down: bits of a mask.
enum ThrottleReason : uint32_t {
  kThrottlePowerCap = 1,         // at its power limit: usual under load
  kThrottleSyncBoost = 2,        // another device of its boost group is
  kThrottleSlowdown = 4,         // hardware halves the clocks: heat, power or power brake
  kThrottleThermal = 8,          // driver keeps the temperature below its limit
  kThrottleHardwareThermal = 16, // hardware halves the clocks because of heat
  kThrottlePowerBrake = 32,      // the power supply asks for it
};
struct ThrottleReasonName {
  ThrottleReason reason;
  const char* name;  // of a label of a metric
};
std::span<const ThrottleReasonName> AllThrottleReasons();

// What the driver says is needed to make the device whole again.
enum class RecoveryAction { kNone, kReset, kReboot, kDrainPeers, kDrainAndReset, kOther };

struct DeviceSample {
  // What the device does not tell is absent.
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  // Memory errors since the driver was loaded.
  std::optional<uint64_t> corrected_errors;
  std::optional<uint64_t> uncorrected_errors;
  uint32_t throttle_reasons = 0;  // of ThrottleReason
  RecoveryAction recovery_action = RecoveryAction::kNone;
  std::string lost;  // why the device cannot be reached any more; empty: it can
};

struct DeviceEvent {
  enum class Kind {
    kXid,             // the driver's error report
    kDoubleBitError,  // an uncorrectable memory error
  };
  Kind kind = Kind::kXid;
  uint64_t xid = 0;  // of kXid
};

}  // namespace troupe

#endif  // TROUPE_WORKER_HEALTH_DEVICE_SAMPLE_H_
