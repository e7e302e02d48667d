#include "worker/devices/device_health.h"

#include <fmt/format.h>

#include <vector>

#include "worker/devices/xid_catalog.h"

namespace troupe {
namespace {

constexpr ThrottleReasonName kReasons[] = {
    {kThrottlePowerCap, "power_cap"},
    {kThrottleSyncBoost, "sync_boost"},
    {kThrottleSlowdown, "hardware_slowdown"},
    {kThrottleThermal, "thermal"},
    {kThrottleHardwareThermal, "hardware_thermal"},
    {kThrottlePowerBrake, "power_brake"},
};

// Reasons that indicate a fault. A device at its power limit works as specified, and one in a boost
// group follows another's reason.
constexpr uint32_t kUnusualReasons =
    kThrottleSlowdown | kThrottleThermal | kThrottleHardwareThermal | kThrottlePowerBrake;

// The worst health found, with all causes of that health, each once.
class Findings {
 public:
  void Add(Health health, const std::string& cause) {
    if (health < verdict_.health || health == Health::kHealthy) return;
    if (health > verdict_.health) verdict_ = {health, {}};
    if (verdict_.cause.find(cause) != std::string::npos) return;
    if (!verdict_.cause.empty()) verdict_.cause += "; ";
    verdict_.cause += cause;
  }
  Verdict Finish() { return std::move(verdict_); }

 private:
  Verdict verdict_;
};

void AddRecoveryAction(RecoveryAction action, Findings& findings) {
  switch (action) {
    case RecoveryAction::kNone:
      return;
    case RecoveryAction::kReset:
      return findings.Add(Health::kCondemned, "the driver requests a reset of the GPU");
    case RecoveryAction::kReboot:
      return findings.Add(Health::kCondemned, "the driver requests a reboot of the host");
    // Running work may end normally.
    case RecoveryAction::kDrainPeers:
      return findings.Add(Health::kDegraded,
                          "the driver requests that the GPU's traffic with other GPUs ends");
    case RecoveryAction::kDrainAndReset:
      return findings.Add(Health::kDegraded,
                          "the driver requests a reset of the GPU when its work is done");
    case RecoveryAction::kOther:
      return findings.Add(Health::kDegraded, "the driver requests an unknown kind of recovery");
  }
}

void AddThrottling(uint32_t reasons, MonotonicTime now, DeviceHistory* history,
                   Findings& findings) {
  if ((reasons & kUnusualReasons) == 0) {
    history->throttled_since.reset();
    return;
  }
  if (!history->throttled_since) history->throttled_since = now;
  if (now - *history->throttled_since < kThrottledLimit) return;
  for (const ThrottleReasonName& one : kReasons) {
    if ((reasons & kUnusualReasons & one.reason) != 0) {
      findings.Add(Health::kDegraded, fmt::format("throttled: {}", one.name));
    }
  }
}

void AddMemoryErrors(const DeviceSample& sample, DeviceHistory* history, Findings& findings) {
  if (!sample.uncorrected_errors) return;
  const uint64_t before = history->uncorrected_errors.value_or(*sample.uncorrected_errors);
  history->uncorrected_errors = sample.uncorrected_errors;
  if (*sample.uncorrected_errors <= before) return;
  findings.Add(Health::kReplaceRank,
               fmt::format("{} uncorrected memory errors", *sample.uncorrected_errors - before));
}

}  // namespace

std::span<const ThrottleReasonName> AllThrottleReasons() { return kReasons; }

Verdict JudgeDevice(const DeviceSample& sample, std::span<const DeviceEvent> events,
                    MonotonicTime now, DeviceHistory* history) {
  Findings findings;
  for (const DeviceEvent& event : events) {
    if (event.kind == DeviceEvent::Kind::kXid) {
      findings.Add(FindXidRule(event.xid).health, DescribeXid(event.xid));
    } else {
      findings.Add(Health::kReplaceRank, "an uncorrected memory error");
    }
  }
  if (!sample.lost.empty()) findings.Add(Health::kCondemned, sample.lost);
  AddMemoryErrors(sample, history, findings);
  AddRecoveryAction(sample.recovery_action, findings);
  AddThrottling(sample.throttle_reasons, now, history, findings);

  Verdict verdict = findings.Finish();
  if (!history->condemned.empty()) return {Health::kCondemned, history->condemned};
  if (verdict.health == Health::kCondemned) history->condemned = verdict.cause;
  if (verdict.health == Health::kReplaceRank) {
    if (history->replaced_at && now - *history->replaced_at < kSameFailure) {
      return {Health::kDegraded, verdict.cause};
    }
    history->replaced_at = now;
  }
  return verdict;
}

}  // namespace troupe
