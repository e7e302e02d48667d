#include "worker/health/device_metrics.h"

#include <string>

namespace troupe {
namespace {

MetricLabels LabelsOf(const DeviceObservation& observation) {
  return {{"device", std::to_string(observation.index)}, {"gpu", observation.id}};
}

MetricLabels With(MetricLabels labels, const char* name, std::string value) {
  labels[name] = std::move(value);
  return labels;
}

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

DeviceMetrics::DeviceMetrics(Metrics& metrics) : metrics_(metrics) {
  metrics_.DeclareGauge("troupe_device_temperature_celsius", "Temperature of the GPU's die.");
  metrics_.DeclareGauge("troupe_device_power_watts", "Power that the GPU draws.");
  metrics_.DeclareCounter("troupe_device_memory_errors_total",
                          "Errors of the GPU's memory, corrected or uncorrected, since the worker "
                          "watches it.");
  metrics_.DeclareCounter("troupe_device_xid_errors_total",
                          "Error reports of the GPU's driver, by Xid.");
  metrics_.DeclareCounter("troupe_device_throttled_seconds_total",
                          "Time for which the GPU's clocks were held down, by reason; reasons may "
                          "hold together.");
  metrics_.DeclareGauge("troupe_device_health",
                        "1 for the state the GPU is in (healthy, degraded, condemned), else 0.");
  metrics_.DeclareCounter("troupe_device_rank_replacements_total",
                          "Faults after which the process on the GPU was replaced.");
  metrics_.DeclareGauge("troupe_device_last_sample_timestamp_seconds",
                        "Unix time at which the GPU last told of itself.");
}

void DeviceMetrics::AddRise(const DeviceObservation& observation, const char* kind,
                            uint64_t total) {
  const auto [seen, first] = memory_errors_.try_emplace({observation.index, kind}, total);
  const uint64_t rise = total > seen->second ? total - seen->second : 0;
  seen->second = total;
  metrics_.Add("troupe_device_memory_errors_total", With(LabelsOf(observation), "kind", kind),
               static_cast<double>(rise));
}

void DeviceMetrics::Record(const DeviceObservation& observation, int64_t wall_ns) {
  const MetricLabels labels = LabelsOf(observation);
  const DeviceSample& sample = observation.sample;
  if (sample.temperature_celsius) {
    metrics_.Set("troupe_device_temperature_celsius", labels, *sample.temperature_celsius);
  }
  if (sample.power_watts) metrics_.Set("troupe_device_power_watts", labels, *sample.power_watts);
  if (sample.corrected_errors) AddRise(observation, "corrected", *sample.corrected_errors);
  if (sample.uncorrected_errors) AddRise(observation, "uncorrected", *sample.uncorrected_errors);
  for (const DeviceEvent& event : observation.events) {
    if (event.kind != DeviceEvent::Kind::kXid) continue;
    metrics_.Add("troupe_device_xid_errors_total", With(labels, "xid", std::to_string(event.xid)),
                 1);
  }
  for (const ThrottleReasonName& one : AllThrottleReasons()) {
    const bool holds = (sample.throttle_reasons & one.reason) != 0;
    metrics_.Add("troupe_device_throttled_seconds_total", With(labels, "reason", one.name),
                 holds ? ToSeconds(observation.elapsed) : 0);
  }
  const std::string state = StateOf(observation.verdict.health);
  for (const char* one : {"healthy", "degraded", "condemned"}) {
    metrics_.Set("troupe_device_health", With(labels, "state", one), state == one ? 1 : 0);
  }
  metrics_.Add("troupe_device_rank_replacements_total", labels,
               observation.verdict.health == Health::kReplaceRank ? 1 : 0);
  if (sample.lost.empty()) {
    metrics_.Set("troupe_device_last_sample_timestamp_seconds", labels,
                 static_cast<double>(wall_ns) * 1e-9);
  }
}

}  // namespace troupe
