#include "worker/worker_metrics.h"

#include "collective/statistics.h"

namespace troupe {

WorkerMetrics::WorkerMetrics(const v1::Hello& identity) {
  metrics_.DeclareHistogram("troupe_collective_duration_seconds",
                            "Collective operations from issue to completion.",
                            {kCollectiveDurationBounds.begin(), kCollectiveDurationBounds.end()});
  metrics_.DeclareCounter(
      "troupe_collective_bytes_total",
      "Bytes of the largest buffer of each collective operation on this worker's ranks.");
  metrics_.DeclareCounter("troupe_device_collectives_total",
                          "Collective operations that devices have carried out among themselves.");
  metrics_.DeclareCounter("troupe_device_collective_seconds_total",
                          "How long this worker's devices stood in them.");
  metrics_.DeclareCounter("troupe_device_collective_bytes_total",
                          "Bytes of the largest buffer of each on this worker's devices.");
  metrics_.DeclareCounter(
      "troupe_device_collective_bus_bytes_total",
      "Bytes that each device's link had to carry at the least: over the seconds, the bus bandwidth.");
  metrics_.DeclareCounter("troupe_kernel_fallbacks_total",
                          "Operations that take a slower way than meant, by kind: reference code, a "
                          "missing library, a transport, cores not shared out with other daemons.");
  metrics_.DeclareGauge("troupe_build_info", "1, with what this worker is and runs on as labels.");
  MetricLabels labels{{"worker", identity.name()}};
  if (identity.devices_size() > 0) {
    const v1::DeviceKind& kind = identity.devices(0).kind();
    labels.insert({{"device", kind.model()},
                   {"kernel_level", kind.kernel_level()},
                   {"versions", kind.versions()}});
  }
  metrics_.Set("troupe_build_info", labels, 1);
}

void WorkerMetrics::Add(int device, const v1::RankMetrics& totals) {
  DeviceTotals& before = reported_[device];
  for (const v1::CollectiveHistogram& histogram : totals.collectives()) {
    if (histogram.duration_counts_size() != static_cast<int>(kCollectiveDurationBounds.size()) + 1)
      continue;
    Totals& old =
        before.collectives[{histogram.operation(), histogram.axis(), histogram.purpose()}];
    old.counts.resize(histogram.duration_counts_size());
    std::vector<double> added;
    for (int i = 0; i < histogram.duration_counts_size(); ++i) {
      added.push_back(static_cast<double>(histogram.duration_counts(i) - old.counts[i]));
      old.counts[i] = histogram.duration_counts(i);
    }
    const MetricLabels labels{{"operation", histogram.operation()},
                              {"axis", histogram.axis()},
                              {"purpose", histogram.purpose()}};
    metrics_.ObserveMany("troupe_collective_duration_seconds", labels, added,
                         histogram.seconds() - old.seconds);
    metrics_.Add("troupe_collective_bytes_total", labels,
                 static_cast<double>(histogram.bytes() - old.bytes));
    old.bytes = histogram.bytes();
    old.seconds = histogram.seconds();
  }
  for (const v1::DeviceCollectiveTotals& now : totals.device_collectives()) {
    v1::DeviceCollectiveTotals& old =
        before.device_collectives[{now.operation(), now.axis(), now.purpose()}];
    const MetricLabels labels{
        {"operation", now.operation()}, {"axis", now.axis()}, {"purpose", now.purpose()}};
    metrics_.Add("troupe_device_collectives_total", labels,
                 static_cast<double>(now.count() - old.count()));
    metrics_.Add("troupe_device_collective_seconds_total", labels, now.seconds() - old.seconds());
    metrics_.Add("troupe_device_collective_bytes_total", labels,
                 static_cast<double>(now.bytes() - old.bytes()));
    metrics_.Add("troupe_device_collective_bus_bytes_total", labels,
                 now.bus_bytes() - old.bus_bytes());
    old = now;
  }
  for (const auto& [operation, count] : totals.kernel_fallbacks()) {
    int64_t& old = before.fallbacks[operation];
    metrics_.Add("troupe_kernel_fallbacks_total", {{"operation", operation}},
                 static_cast<double>(count - old));
    old = count;
  }
}

}  // namespace troupe
