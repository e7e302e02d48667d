#include "plan/cost/schedule_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/bare_plan.h"
#include "plan/cost/step_time.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/validate/decoded_job.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Four stages whose schedule is left to the planner.
v1::JobSpec CostedJob() {
  v1::JobSpec spec;
  for (const char* override :
       {"model.preset=tiny", "model.pattern=(AD)x16", "training.global_batch_size=16",
        "training.compute_dtype=bfloat16", "parallelism.pipeline_parallel_degree=4",
        "parallelism.pipeline_parallel_schedule=auto"}) {
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  }
  ApplyDefaults(&spec);
  return spec;
}

v1::DeviceProfile LaunchProfile(const std::string& name, double launch_seconds) {
  v1::DeviceProfile profile;
  profile.set_name(name);
  profile.set_memory_bytes(int64_t{1} << 36);
  profile.set_bfloat16_flops_per_second(60e12);
  profile.set_matmul_efficiency(0.7);
  profile.set_memory_bytes_per_second(3.35e12);
  profile.set_launch_seconds(launch_seconds);
  profile.set_devices_per_island(8);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(450e9);
    link->set_latency_seconds(3e-6);
  }
  return profile;
}

std::string Costs(const v1::Plan& plan) {
  return plan.schedule_choice(plan.schedule_choice_size() - 1);
}

TEST(ScheduleCosts, OfLaunchesAndOfTransfersChooseUnlikeSchedules) {
  const v1::DeviceProfile sends = LaunchProfile("sends", 0),
                          launches = LaunchProfile("launches", 1e-2);
  const auto by_sends = MakeUnplacedPlan(CostedJob(), &sends);
  const auto by_launches = MakeUnplacedPlan(CostedJob(), &launches);
  const auto by_flops = MakeUnplacedPlan(CostedJob());
  ASSERT_TRUE(by_sends.ok() && by_launches.ok() && by_flops.ok());
  // Two chunks per stage send more often; W has few operations to fill bubbles with where the cost
  // is per operation.
  EXPECT_EQ(by_sends->schedule().name(), "ZBH1");
  EXPECT_EQ(by_launches->schedule().name(), "ZBV");
  EXPECT_THAT(Costs(*by_sends),
              StartsWith("costs of F, I, W in seconds of device profile sends: "));
  EXPECT_THAT(Costs(*by_flops), HasSubstr("in model FLOPs, because no device profile is given: "));
}

TEST(ScheduleCosts, AreSecondsOfTheEstimateOfTheStep) {
  v1::JobSpec spec = CostedJob();
  spec.mutable_parallelism()->set_pipeline_parallel_schedule("1F1B");
  const v1::DeviceProfile profile = LaunchProfile("any", 1e-6);
  const DecodedJob job = DecodeJob(spec).value();
  StageMemo stages(job, profile);
  const auto bare = MakeBarePlan(job, &stages, EverySchedule());
  ASSERT_TRUE(bare.ok());
  v1::Plan uncut = bare->plan;
  uncut.clear_chunks();
  const auto costs = SecondsOfSchedule(uncut, bare->schedule, stages);
  ASSERT_TRUE(costs.ok()) << costs.status();
  const auto simulated = Simulate(bare->schedule, costs->chunks);
  const auto plan = MakeUnplacedPlan(spec);
  ASSERT_TRUE(simulated.ok() && plan.ok());
  EXPECT_EQ(simulated->makespan + costs->once, EstimateStepTime(job, *plan, profile)->seconds);
}

// Four free devices that announce `profile`.
ClusterView Cluster(const v1::DeviceProfile& profile) {
  ClusterView cluster = ImaginedCluster(4, "cpu");
  for (ClusterDevice& device : cluster.free_devices) *device.device.mutable_profile() = profile;
  return cluster;
}

TEST(ScheduleCosts, AreThoseOfTheDevicesAtTheFirstPlacementAndStay) {
  const v1::JobSpec spec = CostedJob();
  const v1::DeviceProfile sends = LaunchProfile("sends", 0),
                          launches = LaunchProfile("launches", 1e-2);
  const auto plan = MakeUnplacedPlan(spec);
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->has_device_profile());
  const auto placed = PlacePlan(spec, *plan, Cluster(sends));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->schedule().name(), "ZBH1");
  EXPECT_EQ(placed->device_profile().name(), "sends");
  // The choice is frozen: neither another placement nor planning again with the stored profile
  // changes it.
  const auto again = PlacePlan(spec, *placed, Cluster(launches));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->schedule().SerializeAsString(), placed->schedule().SerializeAsString());
  EXPECT_EQ(again->digest(), placed->digest());
  const auto anew = MakeUnplacedPlan(spec, &placed->device_profile());
  ASSERT_TRUE(anew.ok());
  EXPECT_EQ(anew->schedule().SerializeAsString(), placed->schedule().SerializeAsString());
  // If the profile lacks the rate, the choice is by FLOPs.
  v1::DeviceProfile no_rate = sends;
  no_rate.clear_bfloat16_flops_per_second();
  no_rate.set_float32_flops_per_second(1e12);
  const auto by_flops = PlacePlan(spec, *plan, Cluster(no_rate));
  ASSERT_TRUE(by_flops.ok()) << by_flops.status();
  EXPECT_THAT(Costs(*by_flops), HasSubstr("model FLOPs"));
}

}  // namespace
}  // namespace troupe
