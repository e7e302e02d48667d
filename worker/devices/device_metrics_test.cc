#include "worker/devices/device_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kLabels = "device=\"3\",gpu=\"GPU-a\"";

DeviceObservation Observed(uint64_t corrected, uint32_t reasons = 0) {
  DeviceObservation observation{.index = 3, .id = "GPU-a", .elapsed = std::chrono::seconds(2)};
  observation.sample.temperature_celsius = 61;
  observation.sample.power_watts = 412.5;
  observation.sample.utilization = 0.5;
  observation.sample.clock_hertz = 1.5e9;
  observation.sample.memory_used_bytes = 4096;
  observation.sample.corrected_errors = corrected;
  observation.sample.uncorrected_errors = 0;
  observation.sample.throttle_reasons = reasons;
  return observation;
}

TEST(DeviceMetrics, ShowWhatADeviceReportedLast) {
  Metrics metrics;
  DeviceMetrics devices(metrics);
  devices.Record(Observed(0), 1'500'000'000);
  const std::string text = metrics.ToText();
  EXPECT_THAT(text, HasSubstr("troupe_device_temperature_celsius{" + kLabels + "} 61\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_power_watts{" + kLabels + "} 412.5\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_utilization_ratio{" + kLabels + "} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_clock_hertz{" + kLabels + "} 1500000000\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_memory_used_bytes{" + kLabels + "} 4096\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_health{" + kLabels + ",state=\"healthy\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_health{" + kLabels + ",state=\"condemned\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_rank_replacements_total{" + kLabels + "} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("troupe_device_last_sample_timestamp_seconds{" + kLabels + "} 1.5\n"));
}

TEST(DeviceMetrics, CountMemoryErrorsFromTheFirstSampleOn) {
  Metrics metrics;
  DeviceMetrics devices(metrics);
  const std::string series =
      "troupe_device_memory_errors_total{" + kLabels + ",kind=\"corrected\"} ";
  devices.Record(Observed(40), 0);
  EXPECT_THAT(metrics.ToText(), HasSubstr(series + "0\n"));
  devices.Record(Observed(43), 0);
  EXPECT_THAT(metrics.ToText(), HasSubstr(series + "3\n"));
  devices.Record(Observed(1), 0);  // the driver was reloaded
  devices.Record(Observed(2), 0);
  EXPECT_THAT(metrics.ToText(), HasSubstr(series + "4\n"));
}

TEST(DeviceMetrics, CountXidsAndTheProcessesThatTheyCost) {
  Metrics metrics;
  DeviceMetrics devices(metrics);
  DeviceObservation observation = Observed(0);
  observation.events = {{.kind = DeviceEvent::Kind::kXid, .xid = 13},
                        {.kind = DeviceEvent::Kind::kXid, .xid = 13},
                        {.kind = DeviceEvent::Kind::kDoubleBitError}};
  observation.verdict = {Health::kReplaceRank, "Xid 13"};
  devices.Record(observation, 0);
  observation.events = {{.kind = DeviceEvent::Kind::kXid, .xid = 79}};
  observation.sample = {};
  observation.sample.lost = "GPU is lost";
  observation.verdict = {Health::kCondemned, "Xid 79"};
  devices.Record(observation, 7'000'000'000);
  const std::string text = metrics.ToText();
  EXPECT_THAT(text, HasSubstr("troupe_device_xid_errors_total{" + kLabels + ",xid=\"13\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_xid_errors_total{" + kLabels + ",xid=\"79\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_rank_replacements_total{" + kLabels + "} 1\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_health{" + kLabels + ",state=\"degraded\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_health{" + kLabels + ",state=\"condemned\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("troupe_device_last_sample_timestamp_seconds{" + kLabels + "} 0\n"));
}

TEST(DeviceMetrics, HaveABoundedNumberOfSeriesForAnyNumberOfXids) {
  Metrics metrics;
  DeviceMetrics devices(metrics);
  DeviceObservation observation = Observed(0);
  for (uint64_t xid = 1; xid < 100; ++xid)
    observation.events.push_back({.kind = DeviceEvent::Kind::kXid, .xid = xid});
  devices.Record(observation, 0);
  const std::string text = metrics.ToText();
  EXPECT_THAT(text, HasSubstr("troupe_device_xid_errors_total{" + kLabels + ",xid=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("xid=\"other\"} 97\n"));
  int series = 0;
  for (size_t at = 0; (at = text.find(kLabels, at)) != std::string::npos; ++at) ++series;
  EXPECT_EQ(series, DeviceMetrics::kMostSeries);
}

TEST(DeviceMetrics, AddUpTheTimeOfEachReasonForLowClocks) {
  Metrics metrics;
  DeviceMetrics devices(metrics);
  devices.Record(Observed(0, kThrottlePowerCap | kThrottleThermal), 0);
  devices.Record(Observed(0, kThrottlePowerCap), 0);
  const std::string text = metrics.ToText();
  const std::string series = "troupe_device_throttled_seconds_total{" + kLabels + ",reason=";
  EXPECT_THAT(text, HasSubstr(series + "\"power_cap\"} 4\n"));
  EXPECT_THAT(text, HasSubstr(series + "\"thermal\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(series + "\"power_brake\"} 0\n"));
}

TEST(DeviceMetrics, WhatADeviceDoesNotReportHasNoSeries) {
  Metrics metrics;
  DeviceMetrics devices(metrics);
  DeviceObservation observation = Observed(0);
  observation.sample.power_watts.reset();
  observation.sample.corrected_errors.reset();
  devices.Record(observation, 0);
  EXPECT_THAT(metrics.ToText(), Not(HasSubstr("troupe_device_power_watts{")));
  EXPECT_THAT(metrics.ToText(), Not(HasSubstr("kind=\"corrected\"")));
}

}  // namespace
}  // namespace troupe
