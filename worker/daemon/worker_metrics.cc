#include "worker/daemon/worker_metrics.h"

#include "base/metrics/metric_list.h"
#include "collective/statistics.h"

namespace troupe {

WorkerMetrics::WorkerMetrics(const v1::Hello& identity) {
  const v1::DeviceKind& kind =
      identity.devices_size() > 0 ? identity.devices(0).kind() : v1::DeviceKind::default_instance();
  metrics_.Set(metric::kBuildInfo, 1, label::Version(""), label::Worker(identity.name()),
               label::Device(kind.model()), label::KernelLevel(kind.kernel_level()),
               label::Versions(kind.versions()));
}

void WorkerMetrics::Add(int device, const v1::RankMetrics& totals) {
  DeviceTotals& before = reported_[device];
  for (const v1::CollectiveHistogram& now : totals.collectives()) {
    if (now.duration_counts_size() != static_cast<int>(kCollectiveDurationBounds.size()) + 1)
      continue;
    v1::CollectiveHistogram& old = before.collectives[{now.operation(), now.axis(), now.purpose()}];
    old.mutable_duration_counts()->Resize(now.duration_counts_size(), 0);
    std::vector<double> added;
    for (int i = 0; i < now.duration_counts_size(); ++i) {
      added.push_back(static_cast<double>(now.duration_counts(i) - old.duration_counts(i)));
    }
    const label::Operation operation(now.operation());
    const label::Axis axis(now.axis());
    const label::Purpose purpose(now.purpose());
    metrics_.ObserveMany(metric::kCollectiveDuration,
                         {kCollectiveDurationBounds, added, now.seconds() - old.seconds()},
                         operation, axis, purpose);
    metrics_.Add(metric::kCollectiveBytes, static_cast<double>(now.bytes() - old.bytes()),
                 operation, axis, purpose);
    old = now;
  }
  for (const v1::DeviceCollectiveTotals& now : totals.device_collectives()) {
    v1::DeviceCollectiveTotals& old =
        before.device_collectives[{now.operation(), now.axis(), now.purpose()}];
    const label::Operation operation(now.operation());
    const label::Axis axis(now.axis());
    const label::Purpose purpose(now.purpose());
    metrics_.Add(metric::kDeviceCollectives, static_cast<double>(now.count() - old.count()),
                 operation, axis, purpose);
    metrics_.Add(metric::kDeviceCollectiveTime, now.seconds() - old.seconds(), operation, axis,
                 purpose);
    metrics_.Add(metric::kDeviceCollectiveBytes, static_cast<double>(now.bytes() - old.bytes()),
                 operation, axis, purpose);
    metrics_.Add(metric::kDeviceCollectiveBusBytes, now.bus_bytes() - old.bus_bytes(), operation,
                 axis, purpose);
    old = now;
  }
  for (const auto& [operation, count] : totals.kernel_fallbacks()) {
    int64_t& old = before.fallbacks[operation];
    metrics_.Add(metric::kKernelFallbacks, static_cast<double>(count - old),
                 label::Operation(operation));
    old = count;
  }
}

}  // namespace troupe
