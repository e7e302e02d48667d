#include "plan/cost/tensor_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Matmuls take about as long as the transfers between them.
v1::DeviceProfile PartsProfile() {
  v1::DeviceProfile profile;
  profile.set_name("imagined");
  profile.set_memory_bytes(int64_t{1} << 40);
  profile.set_float32_flops_per_second(1e12);
  profile.set_matmul_efficiency(1);
  profile.set_memory_bytes_per_second(1e30);
  profile.set_launch_seconds(1e-9);
  profile.set_devices_per_island(8);
  for (v1::LinkProfile* link : {profile.mutable_island(), profile.mutable_fabric()}) {
    link->set_bytes_per_second(1e10);
    link->set_latency_seconds(1e-9);
  }
  return profile;
}

v1::Plan Chosen(const v1::DeviceProfile& profile, const std::vector<std::string>& overrides = {}) {
  v1::JobSpec spec;
  std::vector<std::string> all = {"model.preset=tiny", "parallelism.tensor_parallel_degree=2",
                                  "parallelism.sequence_parallel=true",
                                  "training.micro_batch_size=2", "training.sequence_length=512"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  for (const std::string& override : all)
    EXPECT_TRUE(ApplyOverride(override, &spec).ok()) << override;
  ApplyDefaults(&spec);
  v1::Plan plan = MakeUnplacedPlan(spec).value();
  const DecodedJob job = DecodeJob(spec).value();
  StageMemo stages(job, profile);
  const Status status = ChooseTensorParts(stages, &plan);
  EXPECT_TRUE(status.ok()) << status;
  return plan;
}

TEST(TensorPartsTest, MorePartsWhereTheyHideWhatTravels) {
  for (const char* by_rows : {"true", "false"}) {
    const v1::Plan plan =
        Chosen(PartsProfile(), {fmt::format("parallelism.sequence_parallel={}", by_rows)});
    EXPECT_GT(plan.tensor_parallel_parts(), 1) << by_rows;
    ASSERT_EQ(plan.tensor_parts_choice_size(), 4);
    EXPECT_THAT(plan.tensor_parts_choice(0), HasSubstr("1 part: "));
    EXPECT_THAT(plan.tensor_parts_choice(3), HasSubstr("exposed communication"));
  }
}

TEST(TensorPartsTest, OneWhereTransfersNeedTheCores) {
  v1::DeviceProfile profile = PartsProfile();
  profile.set_transfers_need_cores(true);
  EXPECT_EQ(Chosen(profile).tensor_parallel_parts(), 1);
}

TEST(TensorPartsTest, OneWhereEachPartCostsMoreThanItHides) {
  v1::DeviceProfile profile = PartsProfile();
  profile.mutable_island()->set_latency_seconds(1e-2);
  EXPECT_EQ(Chosen(profile).tensor_parallel_parts(), 1);
}

TEST(TensorPartsTest, WhatTheJobStatesStays) {
  const v1::Plan plan = Chosen(PartsProfile(), {"parallelism.tensor_parallel_parts=2"});
  EXPECT_EQ(plan.tensor_parallel_parts(), 2);
  EXPECT_EQ(plan.tensor_parts_choice_size(), 0);
}

TEST(TensorPartsTest, OnlyNumbersThatDivideTheRows) {
  // 30 rows over two tensor ranks: only one part is possible.
  const v1::Plan plan =
      Chosen(PartsProfile(), {"training.micro_batch_size=1", "training.sequence_length=30"});
  EXPECT_EQ(plan.tensor_parallel_parts(), 1);
  EXPECT_EQ(plan.tensor_parts_choice_size(), 1);
}

}  // namespace
}  // namespace troupe
