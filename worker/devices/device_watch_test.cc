#include "worker/devices/device_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "worker/devices/testing/fake_nvml_fixture.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Watches both GPUs; the second is device 4.
class DeviceWatchTest : public FakeNvmlTest {
 protected:
  void TearDown() override {
    watch_.reset();
    Change([](FakeNvml& fake) {
      fake.wait_fails = 0;
      fake.samples = 0;
      fake.waits = 0;
      fake.events.clear();
      EXPECT_EQ(fake.starts, 0);
      EXPECT_EQ(fake.event_sets, 0);
    });
  }

  void Watch(Duration interval, std::string library = TROUPE_FAKE_NVML,
             std::vector<WatchedDevice> devices = {{0, kFirstGpu}, {4, "0000:5e:00.0"}}) {
    watch_ = std::make_unique<DeviceWatch>(DeviceWatchOptions{
        .library = std::move(library),
        .devices = std::move(devices),
        .interval = interval,
        .observed =
            [this](const DeviceObservation& observation) {
              std::lock_guard lock(mutex_);
              observations_.push_back(observation);
              changed_.notify_all();
            },
    });
  }

  // Returns the first observation for which `holds`, from the start or after those already
  // returned; fails the test after some seconds.
  DeviceObservation Next(const std::function<bool(const DeviceObservation&)>& holds) {
    std::unique_lock lock(mutex_);
    DeviceObservation found;
    const bool came = changed_.wait_for(lock, seconds(20), [&] {
      for (; looked_at_ < observations_.size(); ++looked_at_) {
        if (!holds(observations_[looked_at_])) continue;
        found = observations_[looked_at_++];
        return true;
      }
      return false;
    });
    EXPECT_TRUE(came) << "no such observation";
    return found;
  }
  DeviceObservation NextOf(int index) {
    return Next([index](const DeviceObservation& one) { return one.index == index; });
  }
  size_t Count() {
    std::lock_guard lock(mutex_);
    return observations_.size();
  }

  std::unique_ptr<DeviceWatch> watch_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DeviceObservation> observations_;
  size_t looked_at_ = 0;
};

TEST_F(DeviceWatchTest, SamplesEveryDeviceAgainAndAgain) {
  Watch(milliseconds(5));
  const DeviceObservation first = NextOf(0);
  EXPECT_EQ(first.id, kFirstGpu);
  EXPECT_EQ(first.sample.temperature_celsius, 41);
  EXPECT_EQ(first.verdict.health, Health::kHealthy);
  EXPECT_EQ(first.elapsed, Duration::zero());
  EXPECT_EQ(NextOf(4).sample.temperature_celsius, 43);
  EXPECT_GT(NextOf(0).elapsed, Duration::zero());
  Change([](FakeNvml& fake) { fake.gpus[kSecondGpu].celsius = 70; });
  EXPECT_EQ(Next([](const auto& one) { return one.sample.temperature_celsius == 70; }).index, 4);
}

TEST_F(DeviceWatchTest, AnXidIsReportedAtOnceWithItsDevice) {
  Watch(std::chrono::hours(1));
  NextOf(4);
  Happen(kSecondGpu, 79);
  const DeviceObservation fallen = NextOf(4);
  ASSERT_EQ(fallen.events.size(), 1u);
  EXPECT_EQ(fallen.events[0].xid, 79u);
  EXPECT_EQ(fallen.verdict.health, Health::kCondemned);
  EXPECT_EQ(fallen.verdict.cause, "Xid 79 (GPU has fallen off the bus) on 0000:5e:00.0");
  Happen(kFirstGpu, 31);
  const DeviceObservation fault = NextOf(0);
  EXPECT_EQ(fault.verdict.health, Health::kReplaceRank);
  EXPECT_EQ(fault.verdict.cause, "Xid 31 (memory page fault) on GPU-aaaaaaaa-1111");
}

TEST_F(DeviceWatchTest, ADeviceThatIsLostIsCondemnedByTheNextSample) {
  Watch(milliseconds(5));
  NextOf(4);
  Change([](FakeNvml& fake) {
    fake.gpus[kSecondGpu].fails = 15;
    fake.wait_fails = 15;
  });
  EXPECT_EQ(Next([](const auto& one) { return one.verdict.health != Health::kHealthy; }).index, 4);
  // Waiting for events fails from now on; the samples must continue and no core may be kept busy.
  NextOf(0);
  int waits = 0;
  Change([&](FakeNvml& fake) { waits = fake.waits, fake.samples = 0; });
  ASSERT_TRUE(WaitFor([](const FakeNvml& fake) { return fake.samples >= 20; }));
  Change([&](FakeNvml& fake) { EXPECT_LE(fake.waits - waits, 24); });
}

TEST_F(DeviceWatchTest, ADeviceThatIsLostFromTheStartIsCondemned) {
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].fails = 15; });
  Watch(milliseconds(5));
  const DeviceObservation lost = NextOf(0);
  EXPECT_EQ(lost.verdict.health, Health::kCondemned);
  EXPECT_EQ(lost.verdict.cause, "the GPU is lost or waits for a reset on GPU-aaaaaaaa-1111");
  EXPECT_EQ(NextOf(4).verdict.health, Health::kHealthy);
}

TEST_F(DeviceWatchTest, ADeviceThatCannotBeReadIsNotObservedUntilItCan) {
  Watch(milliseconds(5), TROUPE_FAKE_NVML, {{0, kFirstGpu}});
  NextOf(0);
  Change([](FakeNvml& fake) { fake.gpus[kFirstGpu].fails = 999, fake.samples = 0; });
  ASSERT_TRUE(WaitFor([](const FakeNvml& fake) { return fake.samples >= 2; }));
  const size_t before = Count();
  Change([](FakeNvml& fake) { fake.samples = 0; });
  ASSERT_TRUE(WaitFor([](const FakeNvml& fake) { return fake.samples >= 5; }));
  EXPECT_EQ(Count(), before);
  // Events of the device are still judged.
  Happen(kFirstGpu, 119);
  EXPECT_EQ(Next([](const auto& one) { return !one.events.empty(); }).verdict.health,
            Health::kCondemned);
}

TEST_F(DeviceWatchTest, ADeviceThatNvmlDoesNotKnowDoesNotCostTheOthers) {
  Watch(milliseconds(5), TROUPE_FAKE_NVML, {{0, "GPU-unknown"}, {1, kFirstGpu}});
  EXPECT_EQ(Next([](const auto&) { return true; }).index, 1);
}

TEST_F(DeviceWatchTest, WithoutNvmlNothingIsObservedAndNothingHangs) {
  ::testing::internal::CaptureStderr();
  Watch(milliseconds(5), "libno-such-library.so.1");
  watch_.reset();
  EXPECT_EQ(Count(), 0u);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("the health of GPUs is not watched: NVML cannot be loaded"));
}

TEST_F(DeviceWatchTest, AHangingDriverDoesNotHoldTheEndOfTheWatch) {
  Change([](FakeNvml& fake) { fake.hangs = true; });
  Watch(milliseconds(5));
  ASSERT_TRUE(WaitFor([](const FakeNvml& fake) { return fake.samples >= 1; }));
  const auto begin = std::chrono::steady_clock::now();
  watch_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, DeviceWatch::kEndLimit + seconds(10));
  const size_t before = Count();
  Change([](FakeNvml& fake) { fake.hangs = false; });
  ASSERT_TRUE(WaitFor([](const FakeNvml& fake) { return fake.starts == 0; }));
  EXPECT_EQ(Count(), before) << "a watch that has ended reports nothing";
}

}  // namespace
}  // namespace troupe
