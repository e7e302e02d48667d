#include "worker/rank/tpu_chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

using kernels::xla::PciDevice;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(TpuChips, AreTheKnownDevicesOfGoogle) {
  // Also a network card of Google's virtual machines, and a device of another vendor.
  const auto chips = FindTpuChips(
      std::vector<PciDevice>{{0x1ae0, 0x63}, {0x1ae0, 0x42}, {0x1ae0, 0x63}, {0x8086, 0x63}});
  ASSERT_TRUE(chips.has_value());
  EXPECT_EQ(chips->model->model, "TPU v5 lite");
  EXPECT_EQ(chips->count, 2);
  EXPECT_FALSE(FindTpuChips(std::vector<PciDevice>{{0x1ae0, 0x42}}).has_value());
}

TEST(TpuChips, AreAnnouncedWithMemoryAndPeakOfTheirModel) {
  v1::DeviceKind kind;
  kind.set_kind("xla");
  kind.set_model("TPU v6 lite");
  const auto devices = TpuDevices({FindTpuModel("TPU v6 lite"), 4}, kind, 2);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  const v1::Device& second = devices->back();
  EXPECT_EQ(second.index(), 1);
  EXPECT_EQ(second.kind().model(), "TPU v6 lite");
  EXPECT_EQ(second.memory_bytes(), 33'546'041'344);
  EXPECT_EQ(second.peak_flops_bfloat16(), 918e12);
  EXPECT_EQ(second.peak_flops_float32(), 0);  // unknown
  EXPECT_EQ(second.cores(), 0);               // not the host's
}

TEST(TpuChips, OfAnotherNumberOrWithTwoDevicesAreRefused) {
  EXPECT_EQ(TpuDevices({FindTpuModel("TPU v4"), 4}, {}, 5).status(),
            InvalidArgument("5 devices of XLA are asked for, and this host has 4 of TPU v4"));
  EXPECT_EQ(TpuDevices({FindTpuModel("TPU7x"), 4}, {}, 1).status(),
            Unimplemented("a chip of TPU7x has 2 devices, which belong to one process: ranks, "
                          "which have one device each, cannot share it"));
}

TEST(TpuChips, AreOneForEachProcess) {
  EXPECT_THAT(
      OneChipEnvironment(3),
      UnorderedElementsAre(
          Pair("TPU_VISIBLE_CHIPS", "3"), Pair("TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"),
          Pair("TPU_PROCESS_BOUNDS", "1,1,1"), Pair("TPU_PROCESS_ADDRESSES", "localhost:8479"),
          Pair("TPU_PROCESS_PORT", "8479"), Pair("CLOUD_TPU_TASK_ID", "0")));
}

}  // namespace
}  // namespace troupe
