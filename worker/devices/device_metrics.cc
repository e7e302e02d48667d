#include "worker/devices/device_metrics.h"

#include <string>

#include "base/metrics/metric_list.h"

namespace troupe {
namespace {

// The lasting state of a device. kReplaceRank lasts only a moment and is counted instead.
const char* StateOf(Health health) {
  switch (health) {
    case Health::kHealthy:
      return "healthy";
    case Health::kDegraded:
    case Health::kReplaceRank:
      return "degraded";
    case Health::kCondemned:
      return "condemned";
  }
  return "";
}

}  // namespace

void DeviceMetrics::AddRise(const DeviceObservation& observation, const char* kind,
                            uint64_t total) {
  const auto [seen, first] = memory_errors_.try_emplace({observation.index, kind}, total);
  const uint64_t rise = total > seen->second ? total - seen->second : 0;
  seen->second = total;
  metrics_.Add(metric::kDeviceMemoryErrors, static_cast<double>(rise),
               label::Device(std::to_string(observation.index)), label::Gpu(observation.id),
               label::Kind(kind));
}

void DeviceMetrics::Record(const DeviceObservation& observation, int64_t wall_ns) {
  const label::Device device(std::to_string(observation.index));
  const label::Gpu gpu(observation.id);
  const DeviceSample& sample = observation.sample;
  if (sample.temperature_celsius) {
    metrics_.Set(metric::kDeviceTemperature, *sample.temperature_celsius, device, gpu);
  }
  if (sample.power_watts) metrics_.Set(metric::kDevicePower, *sample.power_watts, device, gpu);
  if (sample.utilization)
    metrics_.Set(metric::kDeviceUtilization, *sample.utilization, device, gpu);
  if (sample.clock_hertz) metrics_.Set(metric::kDeviceClock, *sample.clock_hertz, device, gpu);
  if (sample.memory_used_bytes) {
    metrics_.Set(metric::kDeviceMemoryUsed, static_cast<double>(*sample.memory_used_bytes), device,
                 gpu);
  }
  if (sample.corrected_errors) AddRise(observation, "corrected", *sample.corrected_errors);
  if (sample.uncorrected_errors) AddRise(observation, "uncorrected", *sample.uncorrected_errors);
  for (const DeviceEvent& event : observation.events) {
    if (event.kind != DeviceEvent::Kind::kXid) continue;
    std::set<uint64_t>& xids = xids_[observation.index];
    if (xids.size() < kMostXids) xids.insert(event.xid);
    metrics_.Add(metric::kDeviceXidErrors, 1, device, gpu,
                 label::Xid(xids.contains(event.xid) ? std::to_string(event.xid) : "other"));
  }
  for (const ThrottleReasonName& one : AllThrottleReasons()) {
    const bool holds = (sample.throttle_reasons & one.reason) != 0;
    metrics_.Add(metric::kDeviceThrottled, holds ? ToSeconds(observation.elapsed) : 0, device, gpu,
                 label::Reason(one.name));
  }
  const std::string state = StateOf(observation.verdict.health);
  for (const char* one : {"healthy", "degraded", "condemned"}) {
    metrics_.Set(metric::kDeviceHealth, state == one ? 1 : 0, device, gpu, label::State(one));
  }
  metrics_.Add(metric::kDeviceRankReplacements,
               observation.verdict.health == Health::kReplaceRank ? 1 : 0, device, gpu);
  if (sample.lost.empty()) {
    metrics_.Set(metric::kDeviceLastSample, static_cast<double>(wall_ns) * 1e-9, device, gpu);
  }
}

}  // namespace troupe
