#include "worker/daemon/worker_metrics.h"

#include <algorithm>
#include <vector>

#include "base/metrics/metric_list.h"
#include "collective/statistics.h"
#include "worker/devices/device_metrics.h"

namespace troupe {
namespace {

constexpr Duration kSeriesAfterRanks = std::chrono::minutes(15);

constexpr char kOther[] = "other";

// The series of a collective: buckets, sum, count, bytes and bus bytes; of a device-side one.
constexpr int kCollectiveSeries = static_cast<int>(kCollectiveDurationBounds.size()) + 5;
constexpr int kDeviceCollectiveSeries = 4;
constexpr size_t kMostFallbacks = 8;
// Series of the process, of its build and of its health, which others add.
constexpr int kProcessSeries = 11;
constexpr int kFixedSeries = kProcessSeries + static_cast<int>(kMostFallbacks) + 1 +
                             kCollectiveSeries + kDeviceCollectiveSeries;

int CountWatched(const v1::Hello& identity) {
  return static_cast<int>(std::ranges::count_if(
      identity.devices(), [](const v1::Device& device) { return !device.id().empty(); }));
}

int SeriesForCollectives(const v1::Hello& identity) {
  return std::max(WorkerMetrics::kMostSeries - kFixedSeries -
                      CountWatched(identity) * DeviceMetrics::kMostSeries,
                  2 * kCollectiveSeries);
}

// The number of collectives by the host that have series. With GPUs, half of the room is for the
// device-side ones.
int HostCollectives(const v1::Hello& identity) {
  const int share = CountWatched(identity) > 0 ? 2 : 1;
  return SeriesForCollectives(identity) / share / kCollectiveSeries;
}

int DeviceCollectives(const v1::Hello& identity) {
  return (SeriesForCollectives(identity) - HostCollectives(identity) * kCollectiveSeries) /
         kDeviceCollectiveSeries;
}

}  // namespace

WorkerMetrics::WorkerMetrics(const v1::Hello& identity)
    : collectives_(static_cast<size_t>(HostCollectives(identity))),
      device_collectives_(static_cast<size_t>(DeviceCollectives(identity))) {
  const v1::DeviceKind& kind =
      identity.devices_size() > 0 ? identity.devices(0).kind() : v1::DeviceKind::default_instance();
  metrics_.Set(metric::kBuildInfo, 1, label::Version(""), label::Worker(identity.name()),
               label::Device(kind.model()), label::KernelLevel(kind.kernel_level()),
               label::Versions(kind.versions()));
}

void WorkerMetrics::Restart(int device, const std::string& job) {
  DeviceTotals& totals = reported_[device];
  totals = {};
  totals.job = job;
}

void WorkerMetrics::KeepJobs(const std::set<std::string>& jobs, MonotonicTime now) {
  for (const std::string& job : jobs) jobs_[job] = now;
  // A rank may have begun and ended since the last call.
  for (const auto& [device, totals] : reported_) {
    if (!totals.job.empty()) jobs_.try_emplace(totals.job, now);
  }
  std::erase_if(jobs_, [&](const auto& entry) {
    if (now - entry.second < kSeriesAfterRanks) return false;
    metrics_.RemoveSeries(label::JobName(entry.first));
    collectives_.Drop(entry.first);
    device_collectives_.Drop(entry.first);
    std::erase_if(reported_, [&](const auto& of) { return of.second.job == entry.first; });
    return true;
  });
}

bool WorkerMetrics::Room::Admit(const std::string& job, const Key& key) {
  const std::pair<std::string, Key> wanted(job, key);
  if (admitted_.contains(wanted)) return true;
  if (admitted_.size() >= most_) return false;
  admitted_.insert(wanted);
  return true;
}

void WorkerMetrics::Room::Drop(const std::string& job) {
  std::erase_if(admitted_, [&](const auto& one) { return one.first == job; });
}

WorkerMetrics::Labels WorkerMetrics::LabelsOf(const std::string& job, const Key& key, Room* room) {
  if (!room->Admit(job, key)) {
    return {label::JobName(kOther), label::Operation(kOther), label::Axis(kOther), label::Scope(""),
            label::Purpose(kOther)};
  }
  const auto& [operation, axis, scope, purpose] = key;
  return {label::JobName(job), label::Operation(operation), label::Axis(axis), label::Scope(scope),
          label::Purpose(purpose)};
}

void WorkerMetrics::AddCollective(const v1::CollectiveHistogram& now, DeviceTotals* before) {
  if (now.duration_counts_size() != static_cast<int>(kCollectiveDurationBounds.size()) + 1) return;
  const Key key(now.operation(), now.axis(), now.scope(), now.purpose());
  v1::CollectiveHistogram& old = before->collectives[key];
  old.mutable_duration_counts()->Resize(now.duration_counts_size(), 0);
  std::vector<double> added;
  for (int i = 0; i < now.duration_counts_size(); ++i) {
    added.push_back(static_cast<double>(now.duration_counts(i) - old.duration_counts(i)));
  }
  const Labels labels = LabelsOf(before->job, key, &collectives_);
  metrics_.ObserveMany(metric::kCollectiveDuration,
                       {kCollectiveDurationBounds, added, now.seconds() - old.seconds()},
                       labels.job, labels.operation, labels.axis, labels.scope, labels.purpose);
  const auto add = [&](const auto& counter, double value) {
    metrics_.Add(counter, value, labels.job, labels.operation, labels.axis, labels.scope,
                 labels.purpose);
  };
  add(metric::kCollectiveBytes, static_cast<double>(now.bytes() - old.bytes()));
  add(metric::kCollectiveBusBytes, now.bus_bytes() - old.bus_bytes());
  old = now;
}

void WorkerMetrics::AddDeviceCollective(const v1::DeviceCollectiveTotals& now,
                                        DeviceTotals* before) {
  const Key key(now.operation(), now.axis(), now.scope(), now.purpose());
  v1::DeviceCollectiveTotals& old = before->device_collectives[key];
  const Labels labels = LabelsOf(before->job, key, &device_collectives_);
  const auto add = [&](const auto& counter, double value) {
    metrics_.Add(counter, value, labels.job, labels.operation, labels.axis, labels.scope,
                 labels.purpose);
  };
  add(metric::kDeviceCollectives, static_cast<double>(now.count() - old.count()));
  add(metric::kDeviceCollectiveTime, now.seconds() - old.seconds());
  add(metric::kDeviceCollectiveBytes, static_cast<double>(now.bytes() - old.bytes()));
  add(metric::kDeviceCollectiveBusBytes, now.bus_bytes() - old.bus_bytes());
  old = now;
}

void WorkerMetrics::Add(int device, const v1::RankMetrics& totals) {
  DeviceTotals& before = reported_[device];
  for (const v1::CollectiveHistogram& now : totals.collectives()) AddCollective(now, &before);
  for (const v1::DeviceCollectiveTotals& now : totals.device_collectives()) {
    AddDeviceCollective(now, &before);
  }
  for (const auto& [operation, count] : totals.kernel_fallbacks()) {
    int64_t& old = before.fallbacks[operation];
    if (fallbacks_.size() < kMostFallbacks) fallbacks_.insert(operation);
    metrics_.Add(metric::kKernelFallbacks, static_cast<double>(count - old),
                 label::Operation(fallbacks_.contains(operation) ? operation : kOther));
    old = count;
  }
}

}  // namespace troupe
