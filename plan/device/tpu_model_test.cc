#include "plan/device/tpu_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "plan/device/device_profile.h"
#include "plan/device/device_traits.h"
#include "plan/device/tpu_slice.h"

namespace troupe {
namespace {

std::string FileOf(const TpuModel& model) {
  const std::string generation(model.generation);
  return "examples/profiles/tpu-" + (generation == "tpu7x" ? "7x" : generation) + ".yaml";
}

TEST(TpuModel, IsFoundByTheNamesThatLibtpuAndPciHave) {
  EXPECT_EQ(FindTpuModel("TPU v5 lite")->generation, "v5e");
  EXPECT_EQ(FindTpuModel("TPU v5")->generation, "v5p");
  EXPECT_EQ(FindTpuModel("TPU v9"), nullptr);
  EXPECT_EQ(FindTpuModelOfPci(0x6f)->model, "TPU v6 lite");
  EXPECT_EQ(FindTpuModelOfPci(0x42), nullptr);
}

// A chip of TPU7x has 2,307 TFLOP/s and 7,380 GB/s, for its two devices.
TEST(TpuModel, OfTwoDevicesAChipHasHalfOfItsRates) {
  const TpuModel& model = *FindTpuModel("TPU7x");
  EXPECT_EQ(model.devices_per_chip, 2);
  EXPECT_EQ(model.bfloat16_flops_per_second, 1153.5e12);
  EXPECT_EQ(model.memory_bytes_per_second, 3690e9);
}

TEST(TpuModel, HasAProfileWithItsFigures) {
  for (const TpuModel& model : TpuModels()) {
    const std::string path = FileOf(model);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const auto profile = ParseDeviceProfile(text.str(), path);
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(profile->device_model(), model.model);
    EXPECT_EQ(profile->memory_bytes(), model.memory_bytes) << path;
    EXPECT_EQ(profile->bfloat16_flops_per_second(), model.bfloat16_flops_per_second) << path;
    EXPECT_FALSE(profile->has_float32_flops_per_second()) << path;
    EXPECT_EQ(profile->memory_bytes_per_second(), model.memory_bytes_per_second) << path;
    EXPECT_EQ(profile->island().bytes_per_second(), model.ring_bytes_per_second) << path;
    EXPECT_EQ(profile->devices_per_island(), model.chips_per_slice * model.devices_per_chip);
  }
}

TEST(TpuModel, HasMemoryAndCoresOfItsOwnAmongTheDevicesOfXla) {
  v1::DeviceKind device;
  device.set_kind("xla");
  device.set_model("cpu");
  EXPECT_TRUE(FindDeviceTraits(device)->shares_host_cores);
  EXPECT_EQ(FindDeviceTraits(device)->memory, nullptr);
  device.set_model("TPU v6 lite");
  EXPECT_FALSE(FindDeviceTraits(device)->shares_host_cores);
  EXPECT_NE(FindDeviceTraits(device)->memory, nullptr);
  EXPECT_STREQ(FindDeviceTraits(device)->WhyNot(model::OpKind::kQuantize),
               "FP8 tensors are not lowered to XLA");
  EXPECT_EQ(FindDeviceTraits(device)->WhyNot(model::OpKind::kMatmul), nullptr);
  device.set_kind("cpu");
  EXPECT_TRUE(FindDeviceTraits(device)->shares_host_cores);
  device.set_kind("quantum");
  EXPECT_EQ(FindDeviceTraits(device), nullptr);
}

TEST(TpuSlice, IsTheSmallestThatHasTheDevices) {
  const auto shape = [](const char* model, int devices) {
    const auto slice = SliceFor(*FindTpuModel(model), devices);
    return slice.ok() ? *slice : ToString(slice.status());
  };
  EXPECT_EQ(shape("TPU v5 lite", 1), "1x1");
  EXPECT_EQ(shape("TPU v5 lite", 8), "2x4");
  EXPECT_EQ(shape("TPU v6 lite", 9), "4x4");
  EXPECT_EQ(shape("TPU v6 lite", 256), "16x16");
  EXPECT_EQ(shape("TPU v6 lite", 257),
            "INVALID_ARGUMENT: 257 devices are needed, but a slice of TPU v6 lite has at most 256");
  EXPECT_EQ(shape("TPU v4", 1), "2x2x1");
  EXPECT_EQ(shape("TPU v5", 9), "2x2x4");
  EXPECT_EQ(shape("TPU7x", 8), "2x2x1");  // four chips
  EXPECT_EQ(shape("TPU7x", 9), "2x2x2");
}

}  // namespace
}  // namespace troupe
