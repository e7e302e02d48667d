#include "plan/text/precision_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Lines(const std::vector<std::string>& overrides) {
  v1::JobSpec spec;
  for (const std::string& override : overrides) EXPECT_TRUE(ApplyOverride(override, &spec).ok());
  ApplyDefaults(&spec);
  const auto plan = MakeUnplacedPlan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return IdlePrecisionLines(DecodeJob(spec).value(), *plan);
}

const std::string kParam = "training={compute_dtype: bfloat16, mixed_precision: {param: float32}}";
const std::string kReduce = "training.mixed_precision.reduce=bfloat16";

TEST(IdlePrecision, NamesEachKeyWithoutEffect) {
  EXPECT_THAT(Lines({kParam}), ElementsAre(AllOf(HasSubstr("training.mixed_precision.param"),
                                                 HasSubstr("has no effect"))));
  EXPECT_THAT(Lines({kReduce}), ElementsAre(AllOf(HasSubstr("training.mixed_precision.reduce"),
                                                  HasSubstr("has no effect"))));
}

TEST(IdlePrecision, IsSilentWhereTheyHaveOne) {
  EXPECT_THAT(Lines({kParam, "parallelism.data_parallel_shard_degree=2"}), IsEmpty());
  EXPECT_THAT(Lines({"training.mixed_precision.param=bfloat16", "training.compute_dtype=float32"}),
              IsEmpty());
  EXPECT_THAT(Lines({kReduce, "parallelism.data_parallel_replicate_degree=2"}), IsEmpty());
  EXPECT_THAT(
      Lines({kReduce, "parallelism.pipeline_parallel_degree=2", "model.tie_word_embeddings=true"}),
      IsEmpty());
  EXPECT_THAT(Lines({}), IsEmpty());
}

}  // namespace
}  // namespace troupe
