#include "worker/devices/measure_profile.h"

#include <gtest/gtest.h>

#include "base/durable_write.h"
#include "base/temporary_directory.h"
#include "kernels/cuda/emulated/emulated_backend.h"
#include "plan/device/device_profile.h"

namespace troupe {
namespace {

TEST(MeasureProfile, WritesWhatThePlannerReads) {
  const auto measured =
      MeasureProfile({.float32 = 1e12, .bfloat16 = 2e12}, 2, {.tokens = 32, .rounds = 2});
  ASSERT_TRUE(measured.ok()) << measured.status();
  const auto read = ParseDeviceProfile(ToYaml(*measured), "profile.yaml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name(), measured->name());
  EXPECT_EQ(read->memory_bytes(), measured->memory_bytes());
  EXPECT_EQ(read->float32_flops_per_second(), 5e11);
  EXPECT_EQ(read->devices_per_island(), 2);
  EXPECT_TRUE(read->transfers_need_cores());
  for (const double share : {read->matmul_efficiency(), read->attention_efficiency()}) {
    EXPECT_GT(share, 0);
    EXPECT_LT(share, 1);
  }
  // However busy the host, less than 1 MB/s or more than 10 TB/s means a wrong unit.
  for (const double rate : {read->memory_bytes_per_second(), read->island().bytes_per_second()}) {
    EXPECT_GT(rate, 1e6);
    EXPECT_LT(rate, 1e13);
  }
  EXPECT_GT(read->island().latency_seconds(), 1e-8);
  EXPECT_LT(read->launch_seconds(), 1e-1);
}

TEST(MeasureProfile, KeepsTheSmallestShares) {
  v1::DeviceProfile profile;
  profile.set_matmul_efficiency(2e-4);
  profile.set_attention_efficiency(3e-5);
  const std::string text = ToYaml(profile);
  EXPECT_NE(text.find("matmul_efficiency: 0.0002\n"), std::string::npos) << text;
  EXPECT_NE(text.find("attention_efficiency: 3e-05\n"), std::string::npos) << text;
}

TEST(MeasureProfile, IsFoundForAsManyDevicesNextToThePeakOfThisProcessor) {
  const TemporaryDirectory folder;
  PosixFileSystem files;
  v1::DeviceProfile profile;
  profile.set_name("measured");
  profile.set_memory_bytes(1 << 30);
  profile.set_float32_flops_per_second(1e11);
  profile.set_bfloat16_flops_per_second(2e11);
  profile.set_matmul_efficiency(0.9);
  profile.set_memory_bytes_per_second(1e10);
  profile.set_launch_seconds(1e-6);
  profile.set_devices_per_island(2);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e9);
    link->set_latency_seconds(1e-6);
  }
  ASSERT_TRUE(WriteFileDurably(files, folder.Child(kProfileFile), AsBytes(ToYaml(profile))).ok());
  // Without a measured peak the profile's processor is unknown.
  EXPECT_EQ(FindProfile(files, {folder.path()}, 2).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Message(FindProfile(files, {"/nowhere", "/elsewhere"}, 2).status()),
            "no profile of these devices has been measured yet (none in /nowhere; none in "
            "/elsewhere)");
  ASSERT_TRUE(WriteMeasuredPeak(files, folder.path(), {.float32 = 1e11, .bfloat16 = 2e11}).ok());
  const auto found = FindProfile(files, {"", "/nowhere", folder.path()}, 2);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name(), "measured");
  EXPECT_EQ(FindProfile(files, {folder.path()}, 4).status().code(), StatusCode::kNotFound);
}

// Links are measured by all-reduces between two devices, as for GPUs.
TEST(MeasureDeviceProfile, IsWhatThePlannerReadsAndIsFoundByWhatItIsOf) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the emulator is too slow under AddressSanitizer for sums by the hundred";
#endif
  v1::Device device;
  device.mutable_kind()->set_model("emulated GPU");
  device.mutable_kind()->set_versions("driver 1");
  device.set_memory_bytes(1 << 30);
  device.set_peak_flops_bfloat16(1e12);
  std::vector<v1::Device> devices = {device, device};
  const auto measured = MeasureDeviceProfile(
      devices, [](int, CollectiveNetwork*) { return std::make_unique<kernels::EmulatedBackend>(); },
      {.rates = {.extent = 16,
                 .samples = 1,
                 .tokens = 16,
                 .heads = 1,
                 .head_dim = 8,
                 .copy_bytes = 64,
                 .seconds = 1e-5},
       .large_bytes = 1 << 12});
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->bfloat16_flops_per_second(), 1e12);
  EXPECT_GT(measured->float32_flops_per_second(), 0);  // measured, because no peak is known
  EXPECT_EQ(measured->devices_per_island(), 2);
  EXPECT_FALSE(measured->transfers_need_cores());

  const TemporaryDirectory folder;
  PosixFileSystem files;
  EXPECT_EQ(FindDeviceProfile(files, {folder.path()}, devices).status().code(),
            StatusCode::kNotFound);
  ASSERT_TRUE(
      WriteFileDurably(files, folder.Child(kDeviceProfileFile), AsBytes(ToYaml(*measured))).ok());
  const auto found = FindDeviceProfile(files, {"", folder.path()}, devices);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_GT(found->matmul_efficiency(), 0);
  devices[0].mutable_kind()->set_versions("driver 2");
  const auto other = FindDeviceProfile(files, {folder.path()}, devices);
  EXPECT_EQ(other.status().code(), StatusCode::kNotFound);
  EXPECT_NE(Message(other.status()).find("driver 2"), std::string::npos);
}

}  // namespace
}  // namespace troupe
