#include "plan/job/job_rules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace troupe {
namespace {

std::vector<int64_t> StepsOf(const ValidatedSteps& validated, int64_t until) {
  std::vector<int64_t> steps;
  for (int64_t step = 1; step <= until; ++step) {
    if (validated.Has(step)) steps.push_back(step);
  }
  return steps;
}

TEST(JobRulesTest, ValidationFollowsTheFirstStepOnlyWithAnInterval) {
  EXPECT_EQ(StepsOf({.interval = 4, .last = 10}, 10), (std::vector<int64_t>{1, 4, 8, 10}));
  EXPECT_EQ(StepsOf({.interval = 0, .last = 10}, 10), (std::vector<int64_t>{10}));
}

TEST(JobRulesTest, AJobThatStatesNoFolderGetsOneWhenItIsCreated) {
  v1::JobSpec spec;
  EXPECT_TRUE(WillHaveCheckpointFolder(spec));
  EXPECT_FALSE(HasCheckpointFolder(spec));
  spec.mutable_checkpoint()->set_folder("");
  EXPECT_FALSE(WillHaveCheckpointFolder(spec));
  EXPECT_FALSE(HasCheckpointFolder(spec));
  spec.mutable_checkpoint()->set_folder("/checkpoints");
  EXPECT_TRUE(WillHaveCheckpointFolder(spec));
  EXPECT_TRUE(HasCheckpointFolder(spec));
}

TEST(JobRulesTest, SamplesAreHeldOutByAPathOrByAFraction) {
  v1::DataSpec data;
  EXPECT_FALSE(HoldsOutSamples(data));
  data.set_validation("");
  EXPECT_FALSE(HoldsOutSamples(data));
  data.set_validation_fraction(0.1);
  EXPECT_TRUE(HoldsOutSamples(data));
  data.clear_validation_fraction();
  data.set_validation("/data/held-out");
  EXPECT_TRUE(HoldsOutSamples(data));
}

TEST(JobRulesTest, ExpertsAreSpreadOverTensorWhereTheirOwnDegreeIsOne) {
  v1::ParallelismSpec parallelism;
  parallelism.set_tensor_parallel_degree(2);
  EXPECT_FALSE(SpreadsExpertsOverTensor(parallelism));
  parallelism.set_expert_tensor_parallel_degree(2);
  EXPECT_FALSE(SpreadsExpertsOverTensor(parallelism));
  parallelism.set_expert_tensor_parallel_degree(1);
  EXPECT_TRUE(SpreadsExpertsOverTensor(parallelism));
  parallelism.set_tensor_parallel_degree(1);
  EXPECT_FALSE(SpreadsExpertsOverTensor(parallelism));
}

}  // namespace
}  // namespace troupe
