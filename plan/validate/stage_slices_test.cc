#include "plan/validate/stage_slices.h"

#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"

namespace troupe {
namespace {

DecodedJob Job(int pipe, int shard, int tensor, bool whole_matrices = false) {
  v1::JobSpec spec;
  spec.mutable_model()->set_preset("tiny");
  spec.mutable_parallelism()->set_pipeline_parallel_degree(pipe);
  spec.mutable_parallelism()->set_data_parallel_shard_degree(shard);
  spec.mutable_parallelism()->set_tensor_parallel_degree(tensor);
  spec.mutable_parallelism()->set_shard_whole_matrices(whole_matrices);
  ApplyDefaults(&spec);
  return DecodeJob(spec).value();
}

TEST(StageSlices, HaveAPowerOfTwoOfChips) {
  EXPECT_EQ(CheckStageSlices(Job(3, 2, 4)), OkStatus());
  EXPECT_EQ(CheckStageSlices(Job(2, 3, 2)).message(),
            "parallelism has degrees data_replicate 1 × data_shard 3 × context 1 × expert 1 × "
            "tensor 2 = 6 ranks in a pipeline stage, but on TPUs they are a slice, whose number of "
            "chips is a power of two");
}

TEST(StageSlices, HaveEqualSharesOfParameters) {
  EXPECT_EQ(CheckStageSlices(Job(1, 2, 1, true)).message(),
            "parallelism.shard_whole_matrices is true, but on TPUs the ranks of a pipeline stage "
            "run one program, for which each stores an equal share of a matrix");
  EXPECT_EQ(CheckStageSlices(Job(1, 1, 1, true)), OkStatus());
}

TEST(StageSlices, AreOfTpusWhoseChipsHaveOneDevice) {
  EXPECT_TRUE(HasStageSlices("TPU v5 lite"));
  EXPECT_FALSE(HasStageSlices("TPU7x"));
  EXPECT_FALSE(HasStageSlices("cpu"));
}

}  // namespace
}  // namespace troupe
