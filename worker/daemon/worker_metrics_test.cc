#include "worker/daemon/worker_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/statistics.h"

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
  histogram->set_seconds(0.5 * static_cast<double>(count));
  for (size_t i = 0; i <= kCollectiveDurationBounds.size(); ++i)
    histogram->add_duration_counts(i == 3 ? count : 0);
  v1::DeviceCollectiveTotals* device = totals.add_device_collectives();
  device->set_operation("all_gather");
  device->set_axis("data_shard");
  device->set_purpose("unshard");
  device->set_count(count);
  device->set_bytes(64 * count);
  device->set_bus_bytes(48.0 * static_cast<double>(count));
  device->set_seconds(0.25 * static_cast<double>(count));
  (*totals.mutable_kernel_fallbacks())["matmul"] = static_cast<int64_t>(count);
  return totals;
}

TEST(WorkerMetrics, TotalsOfAllDevicesAddUpAndBeginAgainWithEachRank) {
  WorkerMetrics metrics{v1::Hello()};
  metrics.Add(0, Totals(2));
  metrics.Add(0, Totals(5));
  metrics.Add(1, Totals(1));
  metrics.Restart(0);
  metrics.Add(0, Totals(4));
  const std::string text = metrics.metrics().ToText();
  const std::string labels = "{axis=\"tensor\",operation=\"all_reduce\",purpose=\"tensor\"}";
  EXPECT_THAT(text, HasSubstr("troupe_collective_bytes_total" + labels + " 1000"));
  EXPECT_THAT(text, HasSubstr("troupe_collective_duration_seconds_count" + labels + " 10"));
  EXPECT_THAT(text, HasSubstr("troupe_collective_duration_seconds_sum" + labels + " 5"));
  const std::string gathers = "{axis=\"data_shard\",operation=\"all_gather\",purpose=\"unshard\"}";
  EXPECT_THAT(text, HasSubstr("troupe_device_collectives_total" + gathers + " 10"));
  EXPECT_THAT(text, HasSubstr("troupe_device_collective_bytes_total" + gathers + " 640"));
  EXPECT_THAT(text, HasSubstr("troupe_device_collective_bus_bytes_total" + gathers + " 480"));
  EXPECT_THAT(text, HasSubstr("troupe_device_collective_seconds_total" + gathers + " 2.5"));
  EXPECT_THAT(text, HasSubstr("troupe_kernel_fallbacks_total{operation=\"matmul\"} 10"));
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
