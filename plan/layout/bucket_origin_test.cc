#include "plan/layout/bucket_origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kAllStated[] = "parallelism.bucket={elements: 1000, alignment: 32, padding: 96}";

v1::JobSpec BucketJob(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  EXPECT_TRUE(ApplyOverride("training={global_batch_size: 12, micro_batch_size: 1}", &spec).ok());
  for (const std::string& override : overrides)
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  ApplyDefaults(&spec);
  return spec;
}

v1::JobSpec OfReplicas(const char* count, const std::vector<std::string>& more) {
  std::vector<std::string> overrides = more;
  overrides.push_back(std::string("parallelism.data_parallel_replicate_degree=") + count);
  return BucketJob(overrides);
}

v1::Plan PlanOfBuckets(const v1::JobSpec& spec) {
  const auto plan = MakeUnplacedPlan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : v1::Plan();
}

// The plan of `spec`, whose numbers of the bucket are those of the job of `former`.
v1::Plan Inheriting(const v1::JobSpec& spec, const v1::Plan& former) {
  v1::Plan plan = PlanOfBuckets(spec);
  InheritBucketNumbers(spec, former, &plan);
  return plan;
}

std::vector<std::string> BucketLines(const v1::Plan& plan) {
  std::vector<std::string> lines;
  for (const std::string& line : plan.warnings()) {
    if (line.starts_with("parallelism.bucket.")) lines.push_back(line);
  }
  return lines;
}

TEST(BucketOrigin, StatedNumbersAreReportedWithTheDegreesOfBothLayouts) {
  const v1::Plan former = PlanOfBuckets(OfReplicas("3", {kAllStated}));
  EXPECT_THAT(BucketLines(former), IsEmpty());
  const v1::JobSpec spec = OfReplicas("2", {kAllStated});
  EXPECT_THAT(BucketLines(PlanOfBuckets(spec)), IsEmpty());
  const v1::Plan plan = Inheriting(spec, former);
  const auto reported = ElementsAre(
      "parallelism.bucket.elements = 1000 was stated for a layout with data_replicate 3; this one "
      "has data_replicate 2",
      "parallelism.bucket.alignment = 32 was stated for a layout with data_replicate 3; this one "
      "has data_replicate 2",
      "parallelism.bucket.padding = 96 was stated for a layout with data_replicate 3; this one has "
      "data_replicate 2");
  EXPECT_THAT(BucketLines(plan), reported);
  EXPECT_EQ(plan.digest(), PlanOfBuckets(spec).digest());
  // A placed plan gets its warnings anew.
  const auto placed = PlacePlan(spec, plan, ImaginedCluster(2, "cpu"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_THAT(BucketLines(*placed), reported);
}

TEST(BucketOrigin, IsKeptOverLayoutsUntilItsOwnComesBack) {
  const v1::JobSpec three = OfReplicas("3", {kAllStated});
  const v1::Plan two = Inheriting(OfReplicas("2", {kAllStated}), PlanOfBuckets(three));
  const v1::Plan six = Inheriting(OfReplicas("6", {kAllStated}), two);
  ASSERT_EQ(BucketLines(six).size(), 3u);
  EXPECT_EQ(BucketLines(six)[2],
            "parallelism.bucket.padding = 96 was stated for a layout with data_replicate 3; this "
            "one has data_replicate 6");
  EXPECT_THAT(BucketLines(Inheriting(three, six)), IsEmpty());
  EXPECT_FALSE(Inheriting(three, six).has_bucket_stated_for());
}

TEST(BucketOrigin, NumbersThatAreNotStatedOrHaveNoEffectAreNotReported) {
  const v1::Plan plain = Inheriting(OfReplicas("2", {}), PlanOfBuckets(OfReplicas("3", {})));
  EXPECT_THAT(BucketLines(plain), IsEmpty());
  EXPECT_FALSE(plain.has_bucket_stated_for());
  // Under stage 3 without replicas no whole bucket is reduced, so nothing is padded.
  const v1::JobSpec shards =
      BucketJob({"parallelism={data_parallel_shard_degree: 2, zero_stage: 3}",
                 "parallelism.bucket.elements=1000", "parallelism.bucket.padding=192"});
  const v1::Plan former = PlanOfBuckets(
      OfReplicas("3", {"parallelism.bucket.elements=1000", "parallelism.bucket.padding=192"}));
  EXPECT_THAT(InheritedBucketLines(shards.parallelism().bucket(), BucketEffectsOf(shards),
                                   Inheriting(shards, former)),
              ElementsAre("parallelism.bucket.elements = 1000 was stated for a layout with "
                          "data_replicate 3, data_shard 1; this one has data_replicate 1, "
                          "data_shard 2"));
}

TEST(BucketOrigin, IsKnownAfterAChoiceByTheDevicesProfile) {
  const auto job = [](const char* replicas) {
    return OfReplicas(replicas, {kAllStated, "parallelism.pipeline_parallel_degree=2",
                                 "parallelism.pipeline_parallel_schedule=auto"});
  };
  ClusterView cluster = ImaginedCluster(4, "cpu");
  for (ClusterDevice& device : cluster.free_devices) {
    v1::DeviceProfile& profile = *device.device.mutable_profile();
    profile.set_name("drawn");
    profile.set_memory_bytes(int64_t{1} << 40);
    profile.set_float32_flops_per_second(1e12);
    profile.set_bfloat16_flops_per_second(1e12);
    profile.set_matmul_efficiency(1);
    profile.set_attention_efficiency(1);
    profile.set_memory_bytes_per_second(1e11);
    profile.set_devices_per_island(8);
    for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()})
      link->set_bytes_per_second(1e9);
  }
  const v1::Plan plan = Inheriting(job("2"), PlanOfBuckets(job("3")));
  const auto placed = PlacePlan(job("2"), plan, cluster);
  ASSERT_TRUE(placed.ok()) << placed.status();
  ASSERT_EQ(placed->device_profile().name(), "drawn");
  EXPECT_EQ(BucketLines(*placed).size(), 3u);
}

}  // namespace
}  // namespace troupe
