#include "plan/cost/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/violation.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

// Only matmuls cost time, until a test changes that.
v1::DeviceProfile StepProfile() {
  v1::DeviceProfile profile;
  profile.set_name("imagined");
  profile.set_memory_bytes(1 << 30);
  profile.set_float32_flops_per_second(2e9);
  profile.set_matmul_efficiency(0.5);
  profile.set_memory_bytes_per_second(1e30);
  profile.set_launch_seconds(0);
  profile.set_devices_per_island(1);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e30);
    link->set_latency_seconds(0);
  }
  return profile;
}

struct PlannedStep {
  v1::JobSpec spec;
  v1::Plan plan;
};

PlannedStep PlannedWith(const std::vector<std::string>& overrides) {
  PlannedStep planned;
  EXPECT_TRUE(ApplyOverride("model.preset=tiny", &planned.spec).ok());
  for (const std::string& override : overrides) {
    EXPECT_TRUE(ApplyOverride(override, &planned.spec).ok()) << override;
  }
  ApplyDefaults(&planned.spec);
  const auto plan = MakeUnplacedPlan(planned.spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (plan.ok()) planned.plan = *plan;
  return planned;
}

StepTime TimeOf(const PlannedStep& planned, const v1::DeviceProfile& profile) {
  const auto time = EstimateStepTime(DecodeJob(planned.spec).value(), planned.plan, profile);
  EXPECT_TRUE(time.ok()) << time.status();
  return time.ok() ? *time : StepTime{};
}

TEST(StepTime, OfOneRankWithFreeMemoryIsThatOfItsMatmuls) {
  const PlannedStep one = PlannedWith({});
  const StepTime time = TimeOf(one, StepProfile());
  // Half of the peak is attained, and attention's mask is counted exactly where the plan counts
  // half of the square.
  EXPECT_NEAR(time.mfu, 0.5, 0.01);
  EXPECT_NEAR(time.seconds, one.plan.model_flops_per_step() / 1e9, 0.02 * time.seconds);
  EXPECT_EQ(time.communication_seconds, 0);
  EXPECT_EQ(time.bubble_ratio, 0);
}

TEST(StepTime, AttentionGoesAtItsOwnRate) {
  const PlannedStep one = PlannedWith({});
  const StepTime together = TimeOf(one, StepProfile());
  v1::DeviceProfile profile = StepProfile();
  profile.set_attention_efficiency(profile.matmul_efficiency());
  EXPECT_EQ(TimeOf(one, profile).seconds, together.seconds);
  // The time of attention doubles, and the rest is unchanged.
  const auto seconds_at = [&](double efficiency) {
    profile.set_attention_efficiency(efficiency);
    return TimeOf(one, profile).seconds;
  };
  const double attention = seconds_at(0.25) - together.seconds;
  EXPECT_GT(attention, 0);
  EXPECT_LT(attention, 0.5 * together.seconds);
  EXPECT_NEAR(seconds_at(0.125) - together.seconds, 3 * attention, 1e-6 * attention);
}

TEST(StepTime, RecomputationTakesTimeAndIsNoModelFlop) {
  const StepTime kept = TimeOf(PlannedWith({}), StepProfile());
  const StepTime again = TimeOf(PlannedWith({"activation_recomputation.mode=full"}), StepProfile());
  EXPECT_GT(again.seconds, 1.15 * kept.seconds);
  EXPECT_LT(again.seconds, 4.0 / 3 * kept.seconds);
  EXPECT_LT(again.mfu, kept.mfu / 1.15);
}

TEST(StepTime, AVShapedScheduleIdlesLessAndTransfersForFreeWithinARank) {
  const auto plan_of = [](const char* schedule) {
    return PlannedWith({"parallelism.pipeline_parallel_degree=2",
                        std::string("parallelism.pipeline_parallel_schedule=") + schedule});
  };
  const StepTime plain = TimeOf(plan_of("1F1B"), StepProfile());
  for (const char* schedule : {"ZBV", "DualPipeV"}) {
    EXPECT_LT(TimeOf(plan_of(schedule), StepProfile()).bubble_ratio, plain.bubble_ratio)
        << schedule;
  }
  // Each of two stages sends an activation and a gradient for each of 16 microbatches; transfers
  // within the last stage would add half as many.
  v1::DeviceProfile slow = StepProfile();
  slow.mutable_fabric()->set_latency_seconds(1);
  const double seconds = TimeOf(plan_of("ZBV"), slow).communication_seconds;
  EXPECT_GE(seconds, 2 * 16);
  EXPECT_LT(seconds, 2.5 * 16);
}

TEST(StepTime, CountsBubbleAndLinksByTheIslandsThatAGroupSpans) {
  const std::vector<std::string> layout = {"parallelism.pipeline_parallel_degree=2",
                                           "parallelism.tensor_parallel_degree=2"};
  const PlannedStep planned = PlannedWith(layout);
  v1::DeviceProfile profile = StepProfile();
  const StepTime free = TimeOf(planned, profile);
  EXPECT_GT(free.bubble_ratio, 0);
  profile.mutable_fabric()->set_bytes_per_second(1e8);
  const StepTime apart = TimeOf(planned, profile);
  profile.set_devices_per_island(2);  // each tensor group within an island
  const StepTime tensor_within = TimeOf(planned, profile);
  profile.set_devices_per_island(4);
  const StepTime all_within = TimeOf(planned, profile);
  EXPECT_GT(apart.seconds, tensor_within.seconds);
  EXPECT_GT(tensor_within.seconds, all_within.seconds);
  EXPECT_NEAR(all_within.seconds, free.seconds, 1e-6 * free.seconds);
  EXPECT_GT(apart.communication_seconds, tensor_within.communication_seconds);
}

TEST(StepTime, CountsOfCollectivesOnlyWhatTheComputationDoesNotHide) {
  const PlannedStep planned =
      PlannedWith({"parallelism.data_parallel_shard_degree=2", "training.global_batch_size=2"});
  v1::DeviceProfile profile = StepProfile();
  profile.mutable_fabric()->set_bytes_per_second(1e9);
  const StepTime hidden = TimeOf(planned, profile);
  profile.set_transfers_need_cores(true);
  const StepTime exposed = TimeOf(planned, profile);
  EXPECT_GT(hidden.communication_seconds, 0);
  EXPECT_LT(hidden.communication_seconds, 0.7 * exposed.communication_seconds);
  EXPECT_NEAR(exposed.seconds - hidden.seconds,
              exposed.communication_seconds - hidden.communication_seconds, 1e-9);
}

TEST(StepTime, GathersAndSumsAtTheEndsOfAStepHideUnderOneMicrobatchAndTakeHalfTheTimeInBfloat16) {
  v1::DeviceProfile profile = StepProfile();
  profile.mutable_fabric()->set_bytes_per_second(1e9);
  for (const char* layout :
       {"parallelism={data_parallel_replicate_degree: 2, bucket: {elements: 100000}}",
        "parallelism={data_parallel_shard_degree: 2, zero_stage: 1}"}) {
    const auto seconds = [&](bool transfers_need_cores, const char* reduce, const char* samples) {
      profile.set_transfers_need_cores(transfers_need_cores);
      return TimeOf(PlannedWith({layout, std::string("training.global_batch_size=") + samples,
                                 std::string("training.mixed_precision.reduce=") + reduce}),
                    profile)
          .communication_seconds;
    };
    const double exposed = seconds(true, "float32", "8"), hidden = seconds(false, "float32", "8");
    EXPECT_GT(exposed, 0);
    EXPECT_GT(hidden, 0) << "the first gather and the last sum have nothing to hide under";
    EXPECT_LT(hidden, 0.3 * exposed) << layout;
    EXPECT_NEAR(seconds(true, "float32", "32"), exposed, 1e-9)
        << "they run once a step, whatever its microbatches";
    const double half = seconds(true, "bfloat16", "8");
    const bool replicas = std::string(layout).find("replicate") != std::string::npos;
    EXPECT_NEAR(half, (replicas ? 0.5 : 0.75) * exposed, 0.01 * exposed) << layout;
  }
}

TEST(StepTime, RefusesADtypeThatTheProfileHasNoRateFor) {
  const PlannedStep planned = PlannedWith({"training.compute_dtype=bfloat16"});
  const auto time = EstimateStepTime(DecodeJob(planned.spec).value(), planned.plan, StepProfile());
  EXPECT_EQ(time.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(time.status())),
              testing::HasSubstr("bfloat16_flops_per_second is absent"));
  ASSERT_EQ(ViolationsOf(time.status()).size(), 1u) << "so that it gets the place of its key";
  EXPECT_EQ(ViolationsOf(time.status())[0].field, "training.compute_dtype");
}

}  // namespace
}  // namespace troupe
