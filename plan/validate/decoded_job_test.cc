#include "plan/validate/decoded_job.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"

namespace troupe {
namespace {

v1::JobSpec SpecOf(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  EXPECT_EQ(ApplyOverride("model.preset=tiny", &spec), OkStatus());
  for (const std::string& override : overrides)
    EXPECT_EQ(ApplyOverride(override, &spec), OkStatus()) << override;
  ApplyDefaults(&spec);
  return spec;
}

DecodedJob JobOf(const std::vector<std::string>& overrides) {
  return DecodeJob(SpecOf(overrides)).value();
}

TEST(DecodedJobTest, HasTheMeshAndTheBatchOfTheDegrees) {
  const DecodedJob job =
      JobOf({"parallelism={pipeline_parallel_degree: 2, "
             "data_parallel_replicate_degree: 3, context_parallel_degree: 4}",
             "training={global_batch_size: 12, micro_batch_size: 2, "
             "sequence_length: 64}"});
  EXPECT_EQ(job.mesh.ranks(), 24);
  EXPECT_EQ(job.batch.microbatches(), 2);
  EXPECT_EQ(job.rows_per_microbatch(), 32);
}

TEST(DecodedJobTest, AnAbsentDegreeIsOne) {
  v1::JobSpec spec = SpecOf({"parallelism.tensor_parallel_degree=2"});
  spec.mutable_parallelism()->clear_expert_parallel_degree();
  EXPECT_EQ(DecodeJob(spec)->mesh.ranks(), 2);
}

TEST(DecodedJobTest, TooManyRanksAreRefusedEvenWhereTheirNumberOverflows) {
  v1::JobSpec spec = SpecOf({});
  v1::ParallelismSpec& parallelism = *spec.mutable_parallelism();
  for (const auto set : {&v1::ParallelismSpec::set_pipeline_parallel_degree,
                         &v1::ParallelismSpec::set_tensor_parallel_degree,
                         &v1::ParallelismSpec::set_data_parallel_shard_degree,
                         &v1::ParallelismSpec::set_context_parallel_degree}) {
    (parallelism.*set)(65536);
  }
  EXPECT_EQ(std::string(Message(DecodeJob(spec).status())),
            "parallelism has degrees whose product is above 65536 ranks");
}

TEST(DecodedJobTest, GathersParametersWithinRunsOrKeepsThem) {
  const auto reshard = [](const std::string& text) {
    return JobOf(
        {"parallelism={data_parallel_shard_degree: 12, zero_stage: 3, "
         "reshard_after_forward: " +
         text + "}"});
  };
  EXPECT_EQ(reshard("6").shard_run, 6);
  EXPECT_EQ(reshard("6").stage_of_programs(), 3);
  EXPECT_EQ(reshard("true").shard_run, 0);
  EXPECT_FALSE(reshard("true").keeps_gathered);
  EXPECT_EQ(reshard("true").stage_of_programs(), 3);
  EXPECT_TRUE(reshard("false").keeps_gathered);
  EXPECT_EQ(reshard("false").stage_of_programs(), 2);
}

TEST(DecodedJobTest, SavesInBackgroundUnlessTheJobStatesNoFolderOrSynchronousSaves) {
  EXPECT_TRUE(JobOf({}).SavesInBackground());
  EXPECT_FALSE(JobOf({R"(checkpoint.folder="")"}).SavesInBackground());
  EXPECT_FALSE(JobOf({"checkpoint.async_mode=disabled"}).SavesInBackground());
}

TEST(DecodedJobTest, APatternThatDoesNotParseIsRefused) {
  v1::JobSpec spec = SpecOf({});
  spec.mutable_model()->set_pattern("(AD");
  EXPECT_EQ(DecodeJob(spec).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
