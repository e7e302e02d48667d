#include "worker/devices/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/devices/testing/fake_nvml_fixture.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class NvmlTest : public FakeNvmlTest {
 protected:
  void SetUp() override {
    FakeNvmlTest::SetUp();
    auto loaded = Nvml::Load(TROUPE_FAKE_NVML);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    nvml_ = *std::move(loaded);
  }
  nvml::Device Gpu(const char* id) {
    const StatusOr<nvml::Device> found = nvml_->Find(id);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : nullptr;
  }

  std::unique_ptr<Nvml> nvml_;
};

TEST(Nvml, ALibraryThatIsNotThereIsNamed) {
  const auto loaded = Nvml::Load("libno-such-library.so.1");
  EXPECT_EQ(loaded.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(loaded.status())), HasSubstr("libno-such-library.so.1"));
}

TEST(Nvml, ALibraryThatIsNotNvmlIsRefusedWithTheFunctionThatItLacks) {
  const auto loaded = Nvml::Load("libm.so.6");
  EXPECT_EQ(loaded.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(loaded.status())), HasSubstr("nvmlInit_v2"));
}

TEST_F(NvmlTest, ADriverThatIsNotLoadedIsReportedInItsOwnWords) {
  Change([](FakeNvml& fake) { fake.init_fails = 9; });
  const auto loaded = Nvml::Load(TROUPE_FAKE_NVML);
  Change([](FakeNvml& fake) { fake.init_fails = 0; });
  EXPECT_EQ(loaded.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(loaded.status())), HasSubstr("Driver Not Loaded"));
}

TEST_F(NvmlTest, StartsAndStopsTheLibrary) {
  EXPECT_EQ(nvml_->driver_version(), "580.95.05");
  Change([](FakeNvml& fake) { EXPECT_EQ(fake.starts, 1); });
  nvml_.reset();
  Change([](FakeNvml& fake) { EXPECT_EQ(fake.starts, 0); });
}

TEST_F(NvmlTest, FindsAGpuByItsUuidAndByItsAddress) {
  EXPECT_EQ(Gpu(kSecondGpu), Gpu("0000:5e:00.0"));
  EXPECT_EQ(*nvml_->Uuid(Gpu("0000:5e:00.0")), kSecondGpu);
  EXPECT_EQ(*nvml_->Name(Gpu(kFirstGpu)), "NVIDIA H100");
  EXPECT_EQ(nvml_->Find("GPU-none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(nvml_->Find("0000:ff:00.0").status().code(), StatusCode::kNotFound);
}

TEST_F(NvmlTest, SamplesInBaseUnits) {
  Change([](FakeNvml& fake) {
    FakeGpu& gpu = fake.gpus[kFirstGpu];
    gpu.utilization = 87;
    gpu.megahertz = 1980;
    gpu.used_bytes = 70'000'000'000;
    gpu.corrected = 3;
    gpu.uncorrected = 2;
    // Idle, power cap, slowdown, boost, thermal, hardware thermal, power brake, display.
    gpu.clock_reasons = 0x1 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x100;
    gpu.recovery_action = 2;
  });
  const auto sample = nvml_->Sample(Gpu(kFirstGpu));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->temperature_celsius, 41);
  EXPECT_DOUBLE_EQ(*sample->power_watts, 312.5);
  EXPECT_DOUBLE_EQ(*sample->utilization, 0.87);
  EXPECT_DOUBLE_EQ(*sample->clock_hertz, 1.98e9);
  EXPECT_EQ(sample->memory_used_bytes, 70'000'000'000u);
  EXPECT_EQ(sample->corrected_errors, 3u);
  EXPECT_EQ(sample->uncorrected_errors, 2u);
  EXPECT_EQ(sample->throttle_reasons, kThrottlePowerCap | kThrottleSlowdown | kThrottleSyncBoost |
                                          kThrottleThermal | kThrottleHardwareThermal |
                                          kThrottlePowerBrake);
  EXPECT_EQ(sample->recovery_action, RecoveryAction::kReboot);
  EXPECT_EQ(sample->lost, "");
}

TEST_F(NvmlTest, EachReasonForLowClocksIsDistinguished) {
  const std::pair<unsigned long long, uint32_t> reasons[] = {
      {0x1, 0},
      {0x4, kThrottlePowerCap},
      {0x8, kThrottleSlowdown},
      {0x10, kThrottleSyncBoost},
      {0x20, kThrottleThermal},
      {0x40, kThrottleHardwareThermal},
      {0x80, kThrottlePowerBrake},
  };
  for (const auto& [bit, reason] : reasons) {
    Change([&, bit = bit](FakeNvml& fake) { fake.gpus[kFirstGpu].clock_reasons = bit; });
    EXPECT_EQ(nvml_->Sample(Gpu(kFirstGpu))->throttle_reasons, reason) << bit;
  }
}

TEST_F(NvmlTest, WhatADeviceDoesNotHaveIsAbsent) {
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].has_ecc = false; });
  const auto sample = nvml_->Sample(Gpu(kFirstGpu));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_FALSE(sample->corrected_errors.has_value());
  EXPECT_FALSE(sample->uncorrected_errors.has_value());
  EXPECT_EQ(sample->temperature_celsius, 41);
}

TEST_F(NvmlTest, CountsTheProcessesThatCompute) {
  EXPECT_EQ(nvml_->ComputeProcesses(Gpu(kFirstGpu)).value(), 0);
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].processes = 3; });
  EXPECT_EQ(nvml_->ComputeProcesses(Gpu(kFirstGpu)).value(), 3);
  const nvml::Device gpu = Gpu(kFirstGpu);
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].fails = 3; });
  EXPECT_EQ(nvml_->ComputeProcesses(gpu).status().code(), StatusCode::kUnimplemented);
}

TEST_F(NvmlTest, ALostDeviceIsASampleAndAnotherFailureIsNone) {
  const nvml::Device gpu = Gpu(kFirstGpu);
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].fails = 15; });
  const auto lost = nvml_->Sample(gpu);
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_EQ(lost->lost, "GPU is lost");
  EXPECT_EQ(nvml_->Find(kFirstGpu).status().code(), StatusCode::kDataLoss);
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].fails = 16; });
  EXPECT_EQ(nvml_->Sample(gpu)->lost, "GPU requires reset");
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].fails = 999; });
  EXPECT_EQ(nvml_->Sample(gpu).status().code(), StatusCode::kUnavailable);
}

TEST_F(NvmlTest, EventsComeWithTheirDeviceAndXid) {
  auto events = NvmlEvents::Make(*nvml_);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_TRUE((*events)->Register(Gpu(kFirstGpu)).ok());
  ASSERT_TRUE((*events)->Register(Gpu(kSecondGpu)).ok());
  // Single-bit errors, which the fake knows, are not requested.
  Change([](FakeNvml& fake) { EXPECT_EQ(fake.gpus[kFirstGpu].registered, 0x8u | 0x2u); });
  Happen(kSecondGpu, 79);
  Change([](FakeNvml& fake) { fake.events.push_back({kFirstGpu, 0x2, 0}); });
  auto event = (*events)->Wait(milliseconds(1000));
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_EQ((*event)->device, Gpu(kSecondGpu));
  EXPECT_EQ((*event)->what.kind, DeviceEvent::Kind::kXid);
  EXPECT_EQ((*event)->what.xid, 79u);
  event = (*events)->Wait(milliseconds(1000));
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_EQ((*event)->device, Gpu(kFirstGpu));
  EXPECT_EQ((*event)->what.kind, DeviceEvent::Kind::kDoubleBitError);
  event = (*events)->Wait(milliseconds(1));
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_FALSE(event->has_value());
  events->reset();
  Change([](FakeNvml& fake) { EXPECT_EQ(fake.event_sets, 0); });
}

TEST_F(NvmlTest, AnEventTypeThatADeviceLacksDoesNotCostTheOthers) {
  auto events = NvmlEvents::Make(*nvml_);
  Change([](FakeNvml& fake) {
    fake.gpus[kFirstGpu].event_types = 0x8;
    fake.gpus[kSecondGpu].event_types = 0;
  });
  EXPECT_TRUE((*events)->Register(Gpu(kFirstGpu)).ok());
  EXPECT_EQ((*events)->Register(Gpu(kSecondGpu)).code(), StatusCode::kUnimplemented);
  Change([](FakeNvml& fake) { fake.wait_fails = 15; });
  EXPECT_EQ((*events)->Wait(milliseconds(1)).status().code(), StatusCode::kDataLoss);
  Change([](FakeNvml& fake) { fake.wait_fails = 0; });
}

}  // namespace
}  // namespace troupe
