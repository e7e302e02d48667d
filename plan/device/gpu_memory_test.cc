// Tests the GPU memory of a plan against values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/device/gpu_reserve.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/search/layout_estimate.h"
#include "plan/search/search.h"
#include "plan/text/plan_json.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kGibibyte = 1 << 30;

v1::JobSpec JobWith(const std::string& devices, const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const auto& override : overrides) {
    const Status status = ApplyOverride(override, &spec);
    EXPECT_TRUE(status.ok()) << ToString(status);
  }
  spec.set_devices(devices);
  ApplyDefaults(&spec);
  return spec;
}

v1::Plan PlanOf(const v1::JobSpec& spec) {
  const auto plan = MakeUnplacedPlan(spec);
  EXPECT_TRUE(plan.ok()) << ToString(plan.status());
  return plan.ok() ? *plan : v1::Plan();
}

int64_t OfValues(const v1::RankMemory& memory) {
  return memory.parameter_bytes() + memory.compute_copy_bytes() + memory.gradient_bytes() +
         memory.optimizer_bytes() + memory.saved_bytes() + memory.temporary_bytes();
}

TEST(GpuMemoryTest, OfOneRankIsItsValuesAMatmulsWorkspaceAndTheDriversReserve) {
  const v1::RankMemory memory =
      PlanOf(JobWith("cuda", {"model.preset=tiny", "checkpoint={folder: /c, async_mode: async}"}))
          .memory(0);
  // Float32 attention uses no library.
  EXPECT_EQ(memory.scratch_bytes(), 32 * kMebibyte);
  EXPECT_EQ(memory.reserve_bytes(), kGibibyte);
  EXPECT_EQ(memory.total_bytes(), OfValues(memory) + 32 * kMebibyte + kGibibyte);
  // 4 layers with attention 256·(2·256 + 2·128), MLP 3·256·704 and two norms, two tables of 259 ids
  // and a norm; 4 bytes of parameter and 8 bytes of its moments; the number of applied steps.
  const int64_t parameters = 4 * (256 * 768 + 3 * 256 * 704 + 2 * 256) + 2 * 259 * 256 + 256;
  EXPECT_EQ(memory.snapshot_bytes(), 12 * parameters + 4);
  EXPECT_EQ(memory.host_bytes(), 12 * parameters + 4);
}

// 12 heads of 1,024 tokens and 8 samples: 2·1,024² + 4·1,024 bytes per head, a MiB, and 4 bytes of
// lse per row and head.
TEST(GpuMemoryTest, HasTheWorkspaceOfAnAttentionsGradient) {
  const v1::RankMemory memory =
      PlanOf(JobWith("cuda", {"model.preset=llama-124m",
                              "training={global_batch_size: 8, micro_batch_size: "
                              "8, sequence_length: 1024, compute_dtype: bfloat16}"}))
          .memory(0);
  EXPECT_EQ(memory.scratch_bytes(), kMebibyte + 96 * (2 * kMebibyte + 4096) + 4 * 8192 * 12);
  EXPECT_EQ(memory.total_bytes(), OfValues(memory) + memory.scratch_bytes() + kGibibyte);
}

// The reserve by stage, under the job's layout.
std::vector<int64_t> ReservesIn(const std::string& parallelism) {
  std::vector<int64_t> reserves;
  const v1::Plan plan = PlanOf(
      JobWith("cuda", {"model.preset=tiny", "training={global_batch_size: 16, micro_batch_size: 2}",
                       "parallelism={" + parallelism + "}"}));
  for (const v1::RankMemory& memory : plan.memory()) reserves.push_back(memory.reserve_bytes());
  return reserves;
}

TEST(GpuMemoryTest, LeavesAReserveForEachGroupAndEachPipelineLinkOfNccl) {
  const auto reserve = [](int64_t groups, int64_t links) {
    return kGibibyte + groups * 512 * kMebibyte + links * 32 * kMebibyte;
  };
  // Two groups: tensor, and all ranks for the control word.
  EXPECT_EQ(ReservesIn("tensor_parallel_degree: 2"), (std::vector{reserve(2, 0)}));
  // The gradients of the replicas add a group. Activations are sent forward and gradients backward
  // across each boundary; the middle stages have two.
  EXPECT_EQ(ReservesIn("tensor_parallel_degree: 2, data_parallel_replicate_degree: 2, "
                       "pipeline_parallel_degree: 4"),
            (std::vector{reserve(3, 2), reserve(3, 4), reserve(3, 4), reserve(3, 2)}));
  // Chunks 0 and 3 are on one rank, 1 and 2 on the other; nothing is sent between 1 and 2.
  EXPECT_EQ(ReservesIn("pipeline_parallel_degree: 2, pipeline_parallel_schedule: ZBVZeroBubble"),
            (std::vector{reserve(1, 4), reserve(1, 4)}));
}

TEST(GpuMemoryTest, OfAProcessorHasNeitherReserveNorPinnedMemory) {
  const v1::Plan plan =
      PlanOf(JobWith("cpu", {"model.preset=tiny", "checkpoint={folder: /c, async_mode: async}"}));
  const v1::RankMemory& memory = plan.memory(0);
  EXPECT_EQ(memory.reserve_bytes(), 0);
  EXPECT_EQ(memory.host_bytes(), 0);
  EXPECT_GT(memory.snapshot_bytes(), 0);
  EXPECT_EQ(memory.total_bytes(),
            OfValues(memory) + memory.scratch_bytes() + memory.snapshot_bytes());
  EXPECT_THAT(PlanToJson(plan), Not(HasSubstr("reserve_bytes")));
}

TEST(GpuMemoryTest, IsShownApartFromTheHosts) {
  const v1::Plan plan =
      PlanOf(JobWith("cuda", {"model.preset=tiny", "checkpoint={folder: /c, async_mode: async}"}));
  const Json memory = Json::parse(PlanToJson(plan))["stages"][0]["memory"];
  EXPECT_EQ(memory["reserve_bytes"], kGibibyte);
  EXPECT_EQ(memory["host_bytes"], plan.memory(0).snapshot_bytes());
  EXPECT_EQ(memory["total_bytes"], plan.memory(0).total_bytes());
}

v1::DeviceProfile ProfileWith(int64_t memory_bytes) {
  v1::DeviceProfile profile;
  profile.set_name("gpu");
  profile.set_memory_bytes(memory_bytes);
  profile.set_float32_flops_per_second(1e14);
  profile.set_bfloat16_flops_per_second(1e15);
  profile.set_matmul_efficiency(0.8);
  profile.set_memory_bytes_per_second(3e12);
  profile.set_launch_seconds(1e-6);
  profile.set_devices_per_island(8);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e11);
    link->set_latency_seconds(1e-6);
  }
  return profile;
}

TEST(GpuMemoryTest, OfAnEstimateIsThatOfThePlan) {
  for (const std::string schedule : {"1F1B", "ZBVZeroBubble"}) {
    const v1::JobSpec spec = JobWith(
        "cuda", {"model.preset=tiny", "training={global_batch_size: 16, micro_batch_size: 2}",
                 "checkpoint={folder: /c, async_mode: async}",
                 "parallelism={tensor_parallel_degree: 2, pipeline_parallel_degree: 4, "
                 "pipeline_parallel_schedule: " +
                     schedule + "}"});
    const auto estimate = EstimateLayout(DecodeJob(spec).value(), ProfileWith(80 * kGibibyte));
    ASSERT_TRUE(estimate.ok()) << ToString(estimate.status());
    const v1::Plan plan = PlanOf(spec);
    int64_t most = 0;
    for (const v1::RankMemory& memory : plan.memory()) most = std::max(most, memory.total_bytes());
    EXPECT_EQ(estimate->memory_bytes, most);
  }
}

// The model's values take some 50 MB; a reserve of a GiB is too much for a GPU of a GiB, as is
// NCCL's for a GPU of two.
TEST(GpuMemoryTest, ASearchRefusesWhatLeavesTheReserveNoRoom) {
  const v1::JobSpec spec = JobWith(
      "cuda", {"model.preset=tiny", "training={global_batch_size: 4, micro_batch_size: 1}"});
  const auto found = [&](int64_t memory, int devices) {
    const auto result = SearchLayouts(spec, ProfileWith(memory), {.devices = devices, .best = 1});
    EXPECT_TRUE(result.ok()) << ToString(result.status());
    return result.ok() && !result->best.empty();
  };
  EXPECT_FALSE(found(kGibibyte, 1));
  EXPECT_TRUE(found(kGibibyte + 512 * kMebibyte, 1));
  EXPECT_FALSE(found(kGibibyte + 512 * kMebibyte, 2));
  EXPECT_TRUE(found(2 * kGibibyte + 512 * kMebibyte, 2));
}

TEST(GpuMemoryTest, EachRankHasAGpuToItself) {
  const v1::JobSpec spec =
      JobWith("cuda", {"model.preset=tiny", "parallelism.data_parallel_replicate_degree=2"});
  ClusterView cluster = ImaginedCluster(2, "cuda");
  for (ClusterDevice& device : cluster.free_devices) device.worker = "w";
  const auto warned = [&](int64_t first, int64_t second) {
    cluster.free_devices[0].device.set_memory_bytes(first);
    cluster.free_devices[1].device.set_memory_bytes(second);
    const auto plan = PlacePlan(spec, *MakeUnplacedPlan(spec), cluster);
    EXPECT_TRUE(plan.ok()) << ToString(plan.status());
    std::string text;
    for (const std::string& warning : plan->warnings()) text += warning + "\n";
    return text;
  };
  // A GiB, two groups of half a GiB, 32 MiB and values of some 50 MB.
  EXPECT_THAT(warned(80 * kGibibyte, 80 * kGibibyte), Not(HasSubstr("a rank needs")));
  EXPECT_THAT(warned(80 * kGibibyte, kGibibyte),
              HasSubstr("stage 0: a rank needs 2.25 GB of its device, but 1 of the stage's devices "
                        "has less, the smallest only 1.07 GB"));
  EXPECT_THAT(warned(2 * kGibibyte, kGibibyte),
              HasSubstr("2 of the stage's devices have less, the smallest only 1.07 GB"));
}

}  // namespace
}  // namespace troupe
