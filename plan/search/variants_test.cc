#include "plan/search/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/cost/step_time.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/search/search.h"
#include "plan/validate/decoded_job.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::StartsWith;

// Only matmuls cost time, until a test changes that.
v1::DeviceProfile VariantsProfile() {
  v1::DeviceProfile profile;
  profile.set_name("imagined");
  profile.set_memory_bytes(int64_t{1} << 40);
  profile.set_float32_flops_per_second(1e12);
  profile.set_matmul_efficiency(1);
  profile.set_memory_bytes_per_second(1e30);
  profile.set_launch_seconds(0);
  profile.set_devices_per_island(8);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e30);
    link->set_latency_seconds(0);
  }
  return profile;
}

v1::JobSpec StatedJob(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  std::vector<std::string> all = {"model.preset=tiny", "model.pattern=(AD)x8",
                                  "training={global_batch_size: 16, sequence_length: 64}"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  for (const std::string& override : all)
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  return spec;
}

// Varies the layout `keys` of `stated`. Checks that the step gets shorter, and that the estimate is
// that of a plan of the job with the keys.
std::vector<std::string> VariedKeys(const v1::JobSpec& stated, const v1::DeviceProfile& profile,
                                    const std::vector<std::string>& keys) {
  const auto layout = MakeLayout(stated, keys);
  EXPECT_TRUE(layout.ok()) << layout.status();
  const auto estimate = EstimateLayout(DecodeJob(layout->spec).value(), profile);
  EXPECT_TRUE(estimate.ok() && estimate->time.has_value()) << estimate.status();
  LayoutBounds bounds(profile, profile.float32_flops_per_second());
  const VariedLayout varied = Vary(stated, profile, *layout, *estimate, bounds);
  EXPECT_LT(varied.estimate.time->seconds, estimate->time->seconds);
  EXPECT_LE(varied.bound.seconds, varied.estimate.time->seconds);
  EXPECT_LE(varied.bound.bytes, varied.estimate.memory_bytes);
  const auto again = MakeLayout(stated, varied.layout.keys);
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->spec.SerializeAsString(), varied.layout.spec.SerializeAsString());
  const auto plan = MakeUnplacedPlan(again->spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(EstimateStepTime(DecodeJob(again->spec).value(), *plan, profile)->seconds,
            varied.estimate.time->seconds);
  return varied.layout.keys;
}

TEST(Variants, AnotherScheduleIdlesLess) {
  const auto keys =
      VariedKeys(StatedJob({}), VariantsProfile(), {"parallelism.pipeline_parallel_degree=4"});
  EXPECT_THAT(keys, Contains(StartsWith("parallelism.pipeline_parallel_schedule=")));
}

TEST(Variants, MoreChunksOfAStatedScheduleIdleLess) {
  const auto keys =
      VariedKeys(StatedJob({"model.pattern=(AD)x16",
                            "parallelism.pipeline_parallel_schedule=Interleaved1F1B"}),
                 VariantsProfile(), {"parallelism.pipeline_parallel_degree=4"});
  EXPECT_THAT(keys, Contains("parallelism.pipeline_parallel_chunks=4"));
  EXPECT_THAT(keys, Not(Contains(StartsWith("parallelism.pipeline_parallel_schedule="))));
}

TEST(Variants, SplitPointsFollowTheTimesOfTheDevices) {
  v1::DeviceProfile profile = VariantsProfile();
  profile.set_attention_efficiency(0.01);
  const auto keys =
      VariedKeys(StatedJob({"model.pattern=AAAADDDD", "parallelism.pipeline_parallel_schedule=1F1B",
                            "training.sequence_length=512"}),
                 profile, {"parallelism.pipeline_parallel_degree=2"});
  EXPECT_THAT(keys, Contains("parallelism.pipeline_parallel_split_points=[2]"));
}

TEST(Variants, PartsHideTransfersBetweenTensorRanks) {
  v1::DeviceProfile profile = VariantsProfile();
  profile.mutable_island()->set_bytes_per_second(1e10);
  const auto keys =
      VariedKeys(StatedJob({"training.sequence_length=512"}), profile,
                 {"parallelism.tensor_parallel_degree=2", "parallelism.sequence_parallel=true"});
  EXPECT_THAT(keys, Contains(StartsWith("parallelism.tensor_parallel_parts=")));
}

TEST(Variants, ParametersAreGatheredOnceAStepOrWithinIslands) {
  v1::DeviceProfile profile = VariantsProfile();
  profile.mutable_island()->set_bytes_per_second(1e9);
  const v1::JobSpec stated = StatedJob({"training.global_batch_size=32"});
  const std::vector<std::string> layout = {"parallelism.data_parallel_shard_degree=8"};
  EXPECT_THAT(VariedKeys(stated, profile, layout),
              Contains("parallelism.reshard_after_forward=false"));
  // A run of two within an island sends a half of the gradients between islands.
  profile.set_devices_per_island(2);
  profile.mutable_island()->set_bytes_per_second(1e30);
  profile.mutable_fabric()->set_bytes_per_second(1e9);
  EXPECT_THAT(VariedKeys(stated, profile, layout), Contains("parallelism.reshard_after_forward=2"));
}

TEST(Variants, OneExchangeOfHeadsTakesFewerOperationsThanARing) {
  v1::DeviceProfile profile = VariantsProfile();
  profile.set_launch_seconds(1e-4);
  const auto keys = VariedKeys(StatedJob({}), profile, {"parallelism.context_parallel_degree=4"});
  EXPECT_THAT(keys, Contains("parallelism.context_parallel_method=all_to_all"));
}

// Each row goes to six experts, three of which are on the other rank.
TEST(Variants, GatheredRowsAreSentOnceToAllExpertsOfARank) {
  v1::DeviceProfile profile = VariantsProfile();
  profile.mutable_island()->set_bytes_per_second(1e9);
  const auto keys =
      VariedKeys(StatedJob({"model.pattern=(AE)x4", "model.num_experts=8",
                            "model.num_experts_per_tok=6", "model.moe_intermediate_size=352"}),
                 profile, {"parallelism.expert_parallel_degree=2"});
  EXPECT_THAT(keys, Contains("parallelism.expert_dispatch=all_gather"));
}

TEST(Variants, KeysThatTheJobStatesStay) {
  v1::DeviceProfile profile = VariantsProfile();
  profile.mutable_island()->set_bytes_per_second(1e9);
  const v1::JobSpec stated =
      StatedJob({"parallelism={pipeline_parallel_schedule: GPipe, pipeline_parallel_split_points: "
                 "[3], tensor_parallel_parts: 1, reshard_after_forward: \"true\", "
                 "context_parallel_method: ring, zero_stage: 3}"});
  const auto layout = MakeLayout(
      stated,
      {"parallelism.pipeline_parallel_degree=2", "parallelism.tensor_parallel_degree=2",
       "parallelism.data_parallel_shard_degree=4", "parallelism.context_parallel_degree=2"});
  ASSERT_TRUE(layout.ok()) << layout.status();
  for (const VariedKey key : kVariedKeys) {
    EXPECT_TRUE(VariantsOf(stated, *layout, profile, key).empty()) << static_cast<int>(key);
  }
}

TEST(Variants, ASearchFindsThem) {
  v1::DeviceProfile profile = VariantsProfile();
  // Neither gradients nor rows can travel in time, so the layout is a pipeline.
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()})
    link->set_bytes_per_second(3e8);
  const v1::JobSpec stated = StatedJob({"training.sequence_length=32"});
  const auto plain = SearchLayouts(stated, profile, {.devices = 4, .varied = 0});
  const auto varied = SearchLayouts(stated, profile, {.devices = 4});
  ASSERT_TRUE(plain.ok() && varied.ok());
  ASSERT_FALSE(plain->best.empty() || varied->best.empty());
  EXPECT_LT(varied->best[0].time.seconds, 0.99 * plain->best[0].time.seconds);
  EXPECT_EQ(varied->best.size(), plain->best.size());
  EXPECT_EQ(varied->rejected.size(), plain->rejected.size());
  EXPECT_THAT(varied->best[0].keys,
              Contains(StartsWith("parallelism.pipeline_parallel_schedule=")));
}

}  // namespace
}  // namespace troupe
