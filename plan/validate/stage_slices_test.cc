#include "plan/validate/stage_slices.h"

#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"

namespace troupe {
namespace {

v1::JobSpec Job(int pipe, int shard, int tensor) {
  v1::JobSpec spec;
  spec.mutable_parallelism()->set_pipeline_parallel_degree(pipe);
  spec.mutable_parallelism()->set_data_parallel_shard_degree(shard);
  spec.mutable_parallelism()->set_tensor_parallel_degree(tensor);
  ApplyDefaults(&spec);
  return spec;
}

TEST(StageSlices, HaveAPowerOfTwoOfChips) {
  EXPECT_EQ(CheckStageSlices(Job(3, 2, 4)), OkStatus());
  EXPECT_EQ(CheckStageSlices(Job(2, 3, 2)).message(),
            "parallelism has degrees data_replicate 1 × data_shard 3 × context 1 × expert 1 × "
            "tensor 2 = 6 ranks in a pipeline stage, but on TPUs they are a slice, whose number of "
            "chips is a power of two");
}

TEST(StageSlices, HaveEqualSharesOfParameters) {
  v1::JobSpec spec = Job(1, 2, 1);
  spec.mutable_parallelism()->set_shard_whole_matrices(true);
  EXPECT_EQ(CheckStageSlices(spec).message(),
            "parallelism.shard_whole_matrices is true, but on TPUs the ranks of a pipeline stage "
            "run one program, for which each stores an equal share of a matrix");
  spec.mutable_parallelism()->set_data_parallel_shard_degree(1);
  EXPECT_EQ(CheckStageSlices(spec), OkStatus());
}

TEST(StageSlices, AreOfTpusWhoseChipsHaveOneDevice) {
  EXPECT_TRUE(HasStageSlices("TPU v5 lite"));
  EXPECT_FALSE(HasStageSlices("TPU7x"));
  EXPECT_FALSE(HasStageSlices("cpu"));
}

}  // namespace
}  // namespace troupe
