#include "worker/rank/tpu_chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/layout/slice_placement.h"

namespace troupe {
namespace {

using kernels::xla::PciDevice;
using testing::ElementsAre;
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

using Variables = std::map<std::string, std::string>;

StatusOr<TpuHost> HostWith(int chips, const Variables& variables) {
  return FindTpuHost({FindTpuModel("TPU v6 lite"), chips}, "me",
                     [&](const char* name) -> std::optional<std::string> {
                       const auto found = variables.find(name);
                       return found == variables.end() ? std::nullopt
                                                       : std::optional(found->second);
                     });
}

TEST(TpuChips, AreAnnouncedWithMemoryPeakAndPlaceOfTheirModel) {
  v1::DeviceKind kind;
  kind.set_kind("xla");
  kind.set_model("TPU v6 lite");
  const auto host = HostWith(8, {});
  ASSERT_TRUE(host.ok()) << host.status();
  const auto devices = TpuDevices({FindTpuModel("TPU v6 lite"), 8}, *host, kind, 4);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 4u);
  const v1::Device& last = devices->back();
  EXPECT_EQ(last.index(), 3);
  EXPECT_EQ(last.kind().model(), "TPU v6 lite");
  EXPECT_EQ(last.memory_bytes(), 33'546'041'344);
  EXPECT_EQ(last.peak_flops_bfloat16(), 918e12);
  EXPECT_EQ(last.peak_flops_float32(), 0);  // unknown
  EXPECT_EQ(last.cores(), 0);               // not the host's
  EXPECT_EQ(last.chip().slice(), "me");
  EXPECT_THAT(last.chip().position(), ElementsAre(1, 1, 0));
  EXPECT_THAT(last.chip().host_chips(), ElementsAre(2, 4, 1));
  EXPECT_EQ(last.chip().address(), "localhost:8479");
}

TEST(TpuChips, OfAnotherNumberOrWithTwoDevicesAreRefused) {
  EXPECT_EQ(TpuDevices({FindTpuModel("TPU v4"), 4}, {}, {}, 5).status(),
            InvalidArgument("5 devices of XLA are asked for, and this host has 4 of TPU v4"));
  EXPECT_EQ(TpuDevices({FindTpuModel("TPU7x"), 4}, {}, {}, 1).status(),
            Unimplemented("a chip of TPU7x has 2 devices, which belong to one process: ranks, "
                          "which have one device each, cannot share it"));
}

// As on the hosts of a v6e slice 4x4.
const Variables kThirdOfFour = {{"TPU_WORKER_HOSTNAMES", "a.svc,b.svc,c.svc,d.svc"},
                                {"TPU_WORKER_ID", "2"},
                                {"TPU_HOST_BOUNDS", "2,2,1"},
                                {"TPU_CHIPS_PER_HOST_BOUNDS", "2,2,1"}};

TEST(TpuChips, OfOneHostAmongOthersHaveTheirPlaceInTheSlice) {
  const auto host = HostWith(4, kThirdOfFour);
  ASSERT_TRUE(host.ok()) << host.status();
  const auto devices = TpuDevices({FindTpuModel("TPU v6 lite"), 4}, *host, {}, 4);
  ASSERT_TRUE(devices.ok()) << devices.status();
  const v1::TpuChip& second = (*devices)[1].chip();
  EXPECT_EQ(second.slice(), "a.svc");
  EXPECT_EQ(second.address(), "c.svc:8477");
  EXPECT_THAT(second.position(), ElementsAre(1, 2, 0));  // host 2 is above host 0
  EXPECT_EQ(CheckTpuChip(second), OkStatus());
}

TEST(TpuChips, AndVariablesThatContradictEachOtherAreRefused) {
  const auto refusal = [](int chips, const char* name, const char* value) {
    Variables variables = kThirdOfFour;
    variables[name] = value;
    return HostWith(chips, variables).status();
  };
  EXPECT_EQ(refusal(8, "TPU_WORKER_ID", "0"),
            FailedPrecondition("TPU_CHIPS_PER_HOST_BOUNDS is \"2,2,1\", which is 4 chips, but the "
                               "host has 8"));
  EXPECT_EQ(refusal(4, "TPU_HOST_BOUNDS", "2,4,1"),
            FailedPrecondition("TPU_HOST_BOUNDS is \"2,4,1\", which is 8 hosts, but "
                               "TPU_WORKER_HOSTNAMES has 4 names"));
  EXPECT_EQ(refusal(4, "TPU_HOST_BOUNDS", "2,x"),
            FailedPrecondition("TPU_HOST_BOUNDS is \"2,x\", which is not X,Y,Z with numbers from "
                               "1 to 1024"));
  EXPECT_EQ(refusal(4, "TPU_WORKER_ID", "4"),
            FailedPrecondition("TPU_WORKER_ID is \"4\", not a number from 0 to 3, one less than "
                               "TPU_WORKER_HOSTNAMES has names"));
}

v1::RankPlacement Placement(int pipe, int chip, int task, const char* address) {
  v1::RankPlacement placement;
  placement.mutable_coordinates()->set_pipe(pipe);
  placement.set_device(chip);
  v1::SliceProcess& process = *placement.mutable_slice_process();
  for (const int extent : {2, 2, 1}) process.add_bounds(extent);
  for (const int extent : {2, 1, 1}) process.add_host_bounds(extent);
  process.set_task(task);
  process.set_address(address);
  return placement;
}

TEST(TpuChips, GiveEachProcessOneChipOfTheSliceOfItsStage) {
  v1::Plan plan;
  *plan.add_ranks() = Placement(0, 4, 0, "elsewhere:8480");
  *plan.add_ranks() = Placement(1, 2, 0, "a:8478");
  *plan.add_ranks() = Placement(1, 3, 1, "a:8479");
  *plan.add_ranks() = Placement(1, 1, 3, "b:8477");
  *plan.add_ranks() = Placement(1, 0, 2, "b:8476");
  const auto process = ChipProcessOf(plan, 3);
  ASSERT_TRUE(process.has_value());
  EXPECT_THAT(ChipEnvironment(*process),
              UnorderedElementsAre(
                  Pair("TPU_VISIBLE_CHIPS", "1"), Pair("TPU_CHIPS_PER_PROCESS_BOUNDS", "1,1,1"),
                  Pair("TPU_PROCESS_BOUNDS", "2,2,1"),
                  Pair("TPU_PROCESS_ADDRESSES", "a:8478,a:8479,b:8476,b:8477"),
                  Pair("TPU_PROCESS_PORT", "8477"), Pair("CLOUD_TPU_TASK_ID", "3"),
                  Pair("TPU_HOST_BOUNDS", "1,2,1"), Pair("TPU_CHIPS_PER_HOST_BOUNDS", "2,1,1"),
                  Pair("TPU_WORKER_HOSTNAMES", "a,b"), Pair("TPU_WORKER_ID", "1"),
                  Pair("TPU_TOPOLOGY", std::nullopt), Pair("TPU_TOPOLOGY_ALT", std::nullopt),
                  Pair("TPU_TOPOLOGY_WRAP", std::nullopt)));
  plan.mutable_ranks(0)->clear_slice_process();
  EXPECT_FALSE(ChipProcessOf(plan, 0).has_value());
}

}  // namespace
}  // namespace troupe
