// Tests which keys a resumed job keeps, with the planner of the product.
#include "coordinator/job/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "coordinator/state/planner.h"
#include "plan/job/job_file.h"
#include "plan/job/key_path.h"
#include "plan/job/stated_keys.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using KeySettings = std::vector<std::string>;

v1::JobSpec SpecStating(const KeySettings& settings) {
  v1::JobSpec spec;
  for (const std::string& setting : settings) {
    const Status status = ApplyOverride(setting, &spec);
    EXPECT_TRUE(status.ok()) << setting << ": " << status;
  }
  return spec;
}

// Whether the record of the job has the keys that were stated.
enum class StatedRecord { kKnown, kNotKnown };

// The spec of a job of 10 steps with `settings` that is resumed with `overrides`.
StatusOr<v1::JobSpec> SpecOfResumed(const KeySettings& settings, const KeySettings& overrides,
                                    StatedRecord keys) {
  KeySettings all = {"name=a", "data.train=/data/train", "checkpoint.folder=/checkpoints",
                     "training.steps=10"};
  all.insert(all.end(), settings.begin(), settings.end());
  const v1::JobSpec stated = SpecStating(all);
  const Planner planner = MakePlanner();
  const PreparedJob job = Prepare(planner, stated);
  EXPECT_TRUE(job.plan.ok()) << job.plan.status();
  ResumeInputs inputs;
  inputs.spec = *job.spec;
  inputs.submitted = inputs.running = *job.plan;
  inputs.overrides = SpecStating(overrides);
  if (keys == StatedRecord::kKnown) AddStatedKeys(stated, &inputs.stated.emplace());
  return PrepareResume(planner, inputs).spec;
}

struct ResumedKey {
  KeySettings settings;
  KeySettings overrides;
  const char* key;
  const char* expected;
};

void ExpectKeys(const std::vector<ResumedKey>& cases, StatedRecord keys) {
  for (const auto& [settings, overrides, key, expected] : cases) {
    SCOPED_TRACE(testing::PrintToString(settings) + " and " + testing::PrintToString(overrides));
    const auto spec = SpecOfResumed(settings, overrides, keys);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(KeyText(*spec, key), expected) << key;
  }
}

constexpr char kCosine[] = "lr_schedule.decay_type=cosine";
constexpr char kMoreSteps[] = "training.steps=20";
constexpr char kPrecision[] = "training.mixed_precision={reduce: float32}";
constexpr char kShards[] = "parallelism.data_parallel_shard_degree=2";
constexpr char kZbv[] =
    "parallelism={pipeline_parallel_degree: 2, pipeline_parallel_schedule: ZBV}";

TEST(ResumeTest, WhatWasStatedStaysWhateverItsDefaultWouldBe) {
  ExpectKeys(
      {{{kCosine, "lr_schedule.decay_steps=10"}, {kMoreSteps}, "lr_schedule.decay_steps", "10"},
       {{kPrecision, "training.mixed_precision.param=bfloat16"},
        {"training.compute_dtype=float32"},
        "training.mixed_precision.param",
        "\"bfloat16\""},
       {{kShards, "parallelism.zero_stage=3"},
        {"parallelism.data_parallel_shard_degree=4"},
        "parallelism.zero_stage",
        "3"},
       {{kZbv, "parallelism.pipeline_parallel_chunks=2"},
        {"parallelism.pipeline_parallel_schedule=Interleaved1F1B"},
        "parallelism.pipeline_parallel_chunks",
        "2"},
       {{"checkpoint.interval_seconds=600"},
        {"checkpoint.interval=5"},
        "checkpoint.interval_seconds",
        "600"},
       // These have no effect with the overrides, but have one again with later ones.
       {{kCosine, "lr_schedule.decay_steps=7"},
        {"lr_schedule.decay_type=constant"},
        "lr_schedule.decay_steps",
        "7"},
       {{"parallelism={context_parallel_degree: 2, context_parallel_method: all_to_all}"},
        {"parallelism.context_parallel_degree=1"},
        "parallelism.context_parallel_method",
        "\"all_to_all\""}},
      StatedRecord::kKnown);
}

TEST(ResumeTest, WhatFollowedFromOtherKeysFollowsThemAgain) {
  ExpectKeys(
      {{{kCosine}, {kMoreSteps}, "lr_schedule.decay_steps", "20"},
       {{kCosine}, {kMoreSteps, "lr_schedule.decay_steps=10"}, "lr_schedule.decay_steps", "10"},
       {{kCosine}, {"lr_schedule.decay_type=constant"}, "lr_schedule.decay_steps", "absent"},
       {{kPrecision, "training.compute_dtype=bfloat16"},
        {"training.compute_dtype=float32"},
        "training.mixed_precision.param",
        "\"float32\""},
       {{kPrecision, "training.mixed_precision.param=bfloat16"},
        {"training.mixed_precision.param=float32"},
        "training.compute_dtype",
        "\"float32\""},
       {{kShards},
        {"parallelism.data_parallel_shard_degree=1"},
        "parallelism.zero_stage",
        "absent"},
       {{kShards}, {"parallelism.zero_stage=1"}, "parallelism.reshard_after_forward", "absent"},
       {{kShards}, {kMoreSteps}, "parallelism.reshard_after_forward", "\"true\""},
       {{kZbv},
        {"parallelism.pipeline_parallel_schedule=1F1B"},
        "parallelism.pipeline_parallel_chunks",
        "1"},
       {{}, {"checkpoint.interval=5"}, "checkpoint.interval_seconds", "absent"}},
      StatedRecord::kKnown);
}

// In a record of an older version a decay over all steps counts as the default.
TEST(ResumeTest, WithoutARecordOfWhatWasStatedADecayOverAllStepsFollowsThem) {
  ExpectKeys(
      {{{kCosine, "lr_schedule.decay_steps=10"}, {kMoreSteps}, "lr_schedule.decay_steps", "20"},
       {{kCosine, "lr_schedule.decay_steps=7"}, {kMoreSteps}, "lr_schedule.decay_steps", "7"},
       {{kZbv},
        {"parallelism.pipeline_parallel_schedule=1F1B"},
        "parallelism.pipeline_parallel_chunks",
        "1"},
       {{"checkpoint.interval_seconds=600"},
        {"checkpoint.interval=5"},
        "checkpoint.interval_seconds",
        "absent"}},
      StatedRecord::kNotKnown);
}

TEST(ResumeTest, AStatedNumberOfChunksIsRefusedWhereTheScheduleHasAnother) {
  const KeySettings one_chunk = {"parallelism.pipeline_parallel_schedule=1F1B"};
  const KeySettings stated = {kZbv, "parallelism.pipeline_parallel_chunks=2"};
  const Status refused = SpecOfResumed(stated, one_chunk, StatedRecord::kKnown).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refused)), testing::HasSubstr("chunk"));
  KeySettings both = one_chunk;
  both.push_back("parallelism.pipeline_parallel_chunks=1");
  EXPECT_TRUE(SpecOfResumed(stated, both, StatedRecord::kKnown).ok());
}

TEST(ResumeTest, AnotherOptimizerIsRefusedByItsNameAlone) {
  for (const auto& [before, after] : {std::pair("adamw", "sgd"), std::pair("sgd", "adamw")}) {
    for (const StatedRecord keys : {StatedRecord::kKnown, StatedRecord::kNotKnown}) {
      const Status refused = SpecOfResumed({fmt::format("optimizer.name={}", before)},
                                           {fmt::format("optimizer.name={}", after)}, keys)
                                 .status();
      const std::vector<Violation> violations = ViolationsOf(refused);
      ASSERT_EQ(violations.size(), 1u) << refused;
      EXPECT_EQ(violations[0].field, "optimizer.name");
      EXPECT_THAT(violations[0].description, testing::HasSubstr("keeps its value"));
    }
  }
}

TEST(ResumeTest, AListReplacesTheFormerOne) {
  for (const StatedRecord keys : {StatedRecord::kKnown, StatedRecord::kNotKnown}) {
    ExpectKeys({{{"optimizer.no_weight_decay=[\"*norm.weight\"]"},
                 {"optimizer.no_weight_decay=[\"model.embed_tokens.weight\"]"},
                 "optimizer.no_weight_decay",
                 "[\"model.embed_tokens.weight\"]"}},
               keys);
  }
}

}  // namespace
}  // namespace troupe
