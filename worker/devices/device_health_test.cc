#include "worker/devices/device_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr MonotonicTime kStart{seconds(100)};

DeviceEvent Xid(uint64_t code) { return {.kind = DeviceEvent::Kind::kXid, .xid = code}; }

DeviceSample Sample(uint64_t uncorrected = 0) {
  DeviceSample sample;
  sample.temperature_celsius = 50;
  sample.corrected_errors = 0;
  sample.uncorrected_errors = uncorrected;
  return sample;
}

// A device that was first sampled with `uncorrected` errors.
DeviceHistory Known(uint64_t uncorrected = 0) {
  DeviceHistory history;
  JudgeDevice(Sample(uncorrected), {}, kStart, &history);
  return history;
}

TEST(DeviceHealth, TheWorstOfWhatHappenedDecides) {
  struct Case {
    const char* what;
    DeviceSample sample;
    std::vector<DeviceEvent> events;
    Health health;
    const char* cause;
  };
  DeviceSample lost;
  lost.lost = "power: GPU is lost";
  DeviceSample reset = Sample();
  reset.recovery_action = RecoveryAction::kReset;
  DeviceSample reboot = Sample();
  reboot.recovery_action = RecoveryAction::kReboot;
  DeviceSample drain = Sample();
  drain.recovery_action = RecoveryAction::kDrainAndReset;
  DeviceSample corrected = Sample();
  corrected.corrected_errors = 40;
  const DeviceEvent double_bit{.kind = DeviceEvent::Kind::kDoubleBitError};
  const Case cases[] = {
      {"nothing", Sample(), {}, Health::kHealthy, ""},
      {"an Xid that follows others", Sample(), {Xid(45)}, Health::kHealthy, ""},
      {"corrected errors", corrected, {}, Health::kHealthy, ""},
      {"no counters at all", DeviceSample(), {}, Health::kHealthy, ""},
      {"a fault of the process",
       Sample(),
       {Xid(31)},
       Health::kReplaceRank,
       "Xid 31 (memory page fault)"},
      {"what follows from it",
       Sample(),
       {Xid(13), Xid(13), Xid(45), Xid(43)},
       Health::kReplaceRank,
       "Xid 13 (compute engine exception); Xid 43 (process stopped after its own fault)"},
      {"a fault of the device",
       Sample(),
       {Xid(31), Xid(79), Xid(45)},
       Health::kCondemned,
       "Xid 79 (GPU has fallen off the bus)"},
      {"uncorrected errors", Sample(2), {}, Health::kReplaceRank, "2 uncorrected memory errors"},
      {"a double-bit error",
       Sample(),
       {double_bit},
       Health::kReplaceRank,
       "an uncorrected memory error"},
      {"a contained one",
       Sample(1),
       {Xid(94)},
       Health::kReplaceRank,
       "Xid 94 (contained memory error); 1 uncorrected memory errors"},
      {"an uncontained one",
       Sample(1),
       {Xid(95), double_bit},
       Health::kCondemned,
       "Xid 95 (uncontained memory error)"},
      {"a row to be remapped",
       Sample(),
       {Xid(63)},
       Health::kDegraded,
       "Xid 63 (memory row remapped at the next reset)"},
      {"a lost device", lost, {}, Health::kCondemned, "power: GPU is lost"},
      {"a reset that is due",
       reset,
       {Xid(154)},
       Health::kCondemned,
       "the driver requests a reset of the GPU"},
      {"a reboot that is due",
       reboot,
       {},
       Health::kCondemned,
       "the driver requests a reboot of the host"},
      {"a reset after its work",
       drain,
       {},
       Health::kDegraded,
       "the driver requests a reset of the GPU when its work is done"},
  };
  for (const Case& test : cases) {
    DeviceHistory history = Known();
    const Verdict verdict = JudgeDevice(test.sample, test.events, kStart + seconds(1), &history);
    EXPECT_EQ(verdict.health, test.health) << test.what;
    EXPECT_EQ(verdict.cause, test.cause) << test.what;
    EXPECT_EQ(history.condemned.empty(), test.health != Health::kCondemned) << test.what;
  }
}

TEST(DeviceHealth, ErrorsOfBeforeTheFirstSampleCountForNothing) {
  DeviceHistory history = Known(7);
  EXPECT_EQ(JudgeDevice(Sample(7), {}, kStart + seconds(1), &history).health, Health::kHealthy);
  EXPECT_EQ(JudgeDevice(Sample(8), {}, kStart + seconds(2), &history).cause,
            "1 uncorrected memory errors");
}

TEST(DeviceHealth, ACounterThatBeginsAnewIsNoError) {
  DeviceHistory history = Known(7);
  EXPECT_EQ(JudgeDevice(Sample(0), {}, kStart + seconds(1), &history).health, Health::kHealthy);
  EXPECT_EQ(JudgeDevice(Sample(1), {}, kStart + seconds(2), &history).health, Health::kReplaceRank);
}

TEST(DeviceHealth, OneFailureReplacesOneProcess) {
  DeviceHistory history = Known();
  const std::vector<DeviceEvent> events = {Xid(94)};
  EXPECT_EQ(JudgeDevice(Sample(), events, kStart + seconds(1), &history).health,
            Health::kReplaceRank);
  // The counter of the same error rises a moment later.
  EXPECT_EQ(JudgeDevice(Sample(1), {}, kStart + seconds(2), &history).health, Health::kDegraded);
  EXPECT_EQ(JudgeDevice(Sample(1), events, kStart + seconds(5), &history).health,
            Health::kDegraded);
  EXPECT_EQ(JudgeDevice(Sample(1), events, kStart + seconds(6), &history).health,
            Health::kReplaceRank);
}

TEST(DeviceHealth, TheSameFailureMayStillCondemnTheDevice) {
  DeviceHistory history = Known();
  JudgeDevice(Sample(), std::vector{Xid(94)}, kStart + seconds(1), &history);
  EXPECT_EQ(JudgeDevice(Sample(), std::vector{Xid(64)}, kStart + seconds(1), &history).health,
            Health::kCondemned);
}

TEST(DeviceHealth, ACondemnedDeviceStaysSoWithItsFirstCause) {
  DeviceHistory history = Known();
  JudgeDevice(Sample(), std::vector{Xid(119)}, kStart + seconds(1), &history);
  const Verdict verdict =
      JudgeDevice(Sample(), std::vector{Xid(79)}, kStart + seconds(60), &history);
  EXPECT_EQ(verdict.health, Health::kCondemned);
  EXPECT_EQ(verdict.cause, "Xid 119 (GSP does not answer)");
  EXPECT_EQ(JudgeDevice(Sample(), {}, kStart + seconds(90), &history).cause,
            "Xid 119 (GSP does not answer)");
}

TEST(DeviceHealth, ThrottlingDegradesOnceItLasts) {
  DeviceHistory history = Known();
  DeviceSample hot = Sample();
  hot.throttle_reasons = kThrottlePowerCap | kThrottleThermal | kThrottleSlowdown;
  for (int second = 1; second <= 10; ++second) {
    EXPECT_EQ(JudgeDevice(hot, {}, kStart + seconds(second), &history).health, Health::kHealthy);
  }
  const Verdict verdict = JudgeDevice(hot, {}, kStart + seconds(11), &history);
  EXPECT_EQ(verdict.health, Health::kDegraded);
  EXPECT_EQ(verdict.cause, "throttled: hardware_slowdown; throttled: thermal");
  EXPECT_EQ(JudgeDevice(Sample(), {}, kStart + seconds(12), &history).health, Health::kHealthy);
  EXPECT_EQ(JudgeDevice(hot, {}, kStart + seconds(13), &history).health, Health::kHealthy)
      << "a break begins anew";
}

TEST(DeviceHealth, APowerLimitIsNoFault) {
  DeviceHistory history = Known();
  DeviceSample busy = Sample();
  busy.throttle_reasons = kThrottlePowerCap | kThrottleSyncBoost;
  for (int second = 1; second <= 60; ++second) {
    const Verdict verdict = JudgeDevice(busy, {}, kStart + seconds(second), &history);
    ASSERT_EQ(verdict.health, Health::kHealthy);
    ASSERT_THAT(verdict.cause, Not(HasSubstr("throttled")));
  }
}

}  // namespace
}  // namespace troupe
