#include "worker/daemon/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "base/metrics/metric_list.h"
#include "base/metrics/process_metrics.h"
#include "collective/statistics.h"
#include "worker/devices/device_metrics.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::RankMetrics Totals(uint64_t count) {
  v1::RankMetrics totals;
  v1::CollectiveHistogram* histogram = totals.add_collectives();
  histogram->set_operation("all_reduce");
  histogram->set_axis("tensor");
  histogram->set_purpose("tensor");
  histogram->set_bytes(100 * count);
  histogram->set_bus_bytes(75.0 * static_cast<double>(count));
  histogram->set_scope("across");
  histogram->set_seconds(0.5 * static_cast<double>(count));
  for (size_t i = 0; i <= kCollectiveDurationBounds.size(); ++i)
    histogram->add_duration_counts(i == 3 ? count : 0);
  v1::DeviceCollectiveTotals* device = totals.add_device_collectives();
  device->set_operation("all_gather");
  device->set_axis("data_shard");
  device->set_purpose("unshard");
  device->set_scope("island");
  device->set_count(count);
  device->set_bytes(64 * count);
  device->set_bus_bytes(48.0 * static_cast<double>(count));
  device->set_seconds(0.25 * static_cast<double>(count));
  (*totals.mutable_kernel_fallbacks())["matmul"] = static_cast<int64_t>(count);
  return totals;
}

TEST(WorkerMetrics, TotalsOfAllDevicesAddUpAndBeginAgainWithEachRank) {
  WorkerMetrics metrics{v1::Hello()};
  for (const int device : {0, 1}) metrics.Restart(device, "a");
  metrics.Add(0, Totals(2));
  metrics.Add(0, Totals(5));
  metrics.Add(1, Totals(1));
  metrics.Restart(0, "");
  metrics.Restart(0, "a");
  metrics.Add(0, Totals(4));
  const std::string text = metrics.metrics().ToText();
  const std::string labels =
      "{axis=\"tensor\",job_name=\"a\",operation=\"all_reduce\",purpose=\"tensor\","
      "scope=\"across\"}";
  EXPECT_THAT(text, HasSubstr("troupe_collective_bytes_total" + labels + " 1000"));
  EXPECT_THAT(text, HasSubstr("troupe_collective_bus_bytes_total" + labels + " 750"));
  EXPECT_THAT(text, HasSubstr("troupe_collective_duration_seconds_count" + labels + " 10"));
  EXPECT_THAT(text, HasSubstr("troupe_collective_duration_seconds_sum" + labels + " 5"));
  const std::string gathers =
      "{axis=\"data_shard\",job_name=\"a\",operation=\"all_gather\",purpose=\"unshard\","
      "scope=\"island\"}";
  EXPECT_THAT(text, HasSubstr("troupe_device_collectives_total" + gathers + " 10"));
  EXPECT_THAT(text, HasSubstr("troupe_device_collective_bytes_total" + gathers + " 640"));
  EXPECT_THAT(text, HasSubstr("troupe_device_collective_bus_bytes_total" + gathers + " 480"));
  EXPECT_THAT(text, HasSubstr("troupe_device_collective_seconds_total" + gathers + " 2.5"));
  EXPECT_THAT(text, HasSubstr("troupe_kernel_fallbacks_total{operation=\"matmul\"} 10"));
}

TEST(WorkerMetrics, SeriesOfAJobGoAQuarterOfAnHourAfterItsLastRankHere) {
  WorkerMetrics metrics{v1::Hello()};
  const MonotonicTime begin{std::chrono::hours(1)};
  metrics.Restart(0, "a");
  metrics.Restart(1, "b");
  metrics.KeepJobs({"a", "b"}, begin);
  for (const int device : {0, 1}) metrics.Add(device, Totals(1));
  metrics.KeepJobs({"b"}, begin + std::chrono::minutes(14));
  EXPECT_THAT(metrics.metrics().ToText(), HasSubstr("job_name=\"a\""));
  metrics.KeepJobs({"b"}, begin + std::chrono::minutes(15));
  EXPECT_THAT(metrics.metrics().ToText(), Not(HasSubstr("job_name=\"a\"")));
  EXPECT_THAT(metrics.metrics().ToText(), HasSubstr("job_name=\"b\""));
}

// Totals of `count` collectives of each kind, all different.
v1::RankMetrics ManyTotals(int count) {
  v1::RankMetrics totals;
  for (int i = 0; i < count; ++i) {
    v1::RankMetrics one = Totals(1);
    one.mutable_collectives(0)->set_axis(fmt::format("axis {}", i));
    one.mutable_device_collectives(0)->set_axis(fmt::format("axis {}", i));
    totals.MergeFrom(one);
    (*totals.mutable_kernel_fallbacks())[fmt::format("operation {}", i)] = 1;
  }
  return totals;
}

int SeriesIn(const std::string& text) {
  int series = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) series += line.starts_with('#') ? 0 : 1;
  return series;
}

TEST(WorkerMetrics, AWorkerHasAtMost300SeriesWhateverItsRanksReport) {
  for (const int gpus : {0, 1, 8}) {
    v1::Hello identity;
    for (int i = 0; i < gpus; ++i) identity.add_devices()->set_id(fmt::format("GPU-{}", i));
    WorkerMetrics metrics(identity);
    metrics.metrics().Set(metric::kHealthAge, 1);
    metrics.metrics().Add(metric::kHealthAsked, 1);
    metrics.metrics().Set(metric::kInsecure, 0);
    DeviceMetrics devices(metrics.metrics());
    for (int i = 0; i < gpus; ++i) {
      DeviceObservation observation{.index = i, .id = fmt::format("GPU-{}", i)};
      observation.sample = {.temperature_celsius = 1,
                            .power_watts = 1,
                            .utilization = 1,
                            .clock_hertz = 1,
                            .memory_used_bytes = 1,
                            .corrected_errors = 1,
                            .uncorrected_errors = 1};
      for (uint64_t xid = 1; xid < 9; ++xid)
        observation.events.push_back({.kind = DeviceEvent::Kind::kXid, .xid = xid});
      devices.Record(observation, 1);
    }
    for (int job = 0; job < 20; ++job) {
      metrics.Restart(0, fmt::format("job-{}", job));
      metrics.Add(0, ManyTotals(40));
    }
    const std::string text = metrics.metrics().ToText();
    const int series = SeriesIn(text) + SeriesIn(ProcessMetricsText());
    EXPECT_LE(series, WorkerMetrics::kMostSeries) << gpus << " GPUs";
    EXPECT_GT(series, 250) << gpus << " GPUs";
    EXPECT_THAT(text, HasSubstr("job_name=\"job-0\""));
    EXPECT_THAT(text, HasSubstr("troupe_collective_bytes_total{axis=\"other\",job_name=\"other\""));
  }
}

TEST(WorkerMetrics, ACollectiveThatGetsNoSeriesIsAddedToTheOthers) {
  WorkerMetrics metrics{v1::Hello()};
  const MonotonicTime begin{std::chrono::hours(1)};
  metrics.Restart(0, "a");
  metrics.KeepJobs({"a"}, begin);
  metrics.Add(0, ManyTotals(1000));
  std::string text = metrics.metrics().ToText();
  double bytes = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("troupe_collective_bytes_total{"))
      bytes += std::stod(line.substr(line.find("} ") + 2));
  }
  EXPECT_EQ(bytes, 1000 * 100);
  // The end of a job makes room for the next.
  metrics.Restart(0, "");
  metrics.KeepJobs({}, begin + std::chrono::minutes(16));
  metrics.Restart(0, "b");
  metrics.Add(0, ManyTotals(1));
  EXPECT_THAT(metrics.metrics().ToText(), HasSubstr("job_name=\"b\""));
}

TEST(WorkerMetrics, TheFleetsSeriesAreTheCoordinatorsAlone) {
  v1::Hello identity;
  identity.set_name("worker-0");
  const std::string text = WorkerMetrics(identity).metrics().ToText();
  EXPECT_THAT(text, HasSubstr("troupe_build_info{worker=\"worker-0\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("troupe_worker_")));
}

}  // namespace
}  // namespace troupe
