// Tests one job under every schedule: equal samples, equal losses. Ranks are threads over loopback,
// hidden size 64, eight blocks: one per chunk if four stages have two chunks each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/temporary_directory.h"
#include "plan/make_plan.h"
#include "plan/schedules/schedules.h"
#include "tests/layouts/expect_steps.h"
#include "tests/layouts/training.h"

namespace troupe {
namespace {

constexpr int64_t kSteps = 3;

struct Pipeline {
  ScheduleKind kind;
  int chunks_per_stage;
};

// Every schedule with its default number of chunks, and one with twice as many.
std::vector<Pipeline> Pipelines() {
  std::vector<Pipeline> pipelines = {{ScheduleKind::kZeroBubbleH1, 2}};
  for (const ScheduleKind kind : kScheduleKinds) {
    pipelines.push_back({kind, FindSchedule(Name(kind))->default_chunks_per_stage});
  }
  return pipelines;
}

v1::JobSpec Job(int stages, const Pipeline& pipeline, int microbatches, bool tied,
                int64_t steps = kSteps) {
  v1::JobSpec spec = SmallJob({1, 1, stages}, SmallDataPrefix(), steps);
  spec.mutable_model()->set_pattern("(AD)x4");
  spec.mutable_model()->set_tie_word_embeddings(tied);
  spec.mutable_training()->set_global_batch_size(microbatches);
  spec.mutable_parallelism()->set_pipeline_parallel_schedule(Name(pipeline.kind));
  spec.mutable_parallelism()->set_pipeline_parallel_chunks(pipeline.chunks_per_stage);
  return spec;
}

// Returns the steps of the single rank, cached because many cases need them.
const std::vector<StepResult>& SingleRank(int microbatches, bool tied, int64_t steps) {
  static std::map<std::tuple<int, bool, int64_t>, std::vector<StepResult>> results;
  std::vector<StepResult>& result = results[{microbatches, tied, steps}];
  if (result.empty()) {
    result =
        RunOrDie(Job(1, {ScheduleKind::k1F1B, 1}, microbatches, tied, steps), {.steps = steps});
  }
  return result;
}

std::string NameOf(const Pipeline& pipeline) {
  return std::string(Name(pipeline.kind)) + (pipeline.chunks_per_stage == 2 ? "Chunks2" : "");
}

class ScheduleTable : public ::testing::TestWithParam<std::tuple<Pipeline, int, int, bool>> {};

TEST_P(ScheduleTable, LossesAndNormsEqualTheSingleRanks) {
  const auto& [pipeline, stages, microbatches, tied] = GetParam();
  const v1::JobSpec spec = Job(stages, pipeline, microbatches, tied);
  const Status fits = CheckShape(pipeline.kind, {stages, pipeline.chunks_per_stage, microbatches});
  if (!fits.ok()) {
    const Status refused = MakeUnplacedPlan(spec).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(refused)), ::testing::HasSubstr(Message(fits)));
    return;
  }
  ExpectClose(RunOrDie(spec, {.steps = kSteps}), SingleRank(microbatches, tied, kSteps));
}

std::string TableName(const ::testing::TestParamInfo<ScheduleTable::ParamType>& info) {
  const auto& [pipeline, stages, microbatches, tied] = info.param;
  return fmt::format("{}Stages{}Microbatches{}{}", NameOf(pipeline), stages, microbatches,
                     tied ? "Tied" : "");
}

INSTANTIATE_TEST_SUITE_P(Schedules, ScheduleTable,
                         ::testing::Combine(::testing::ValuesIn(Pipelines()),
                                            ::testing::Values(2, 4),
                                            ::testing::Values(1, 2, 3, 4, 8, 16),
                                            ::testing::Bool()),
                         TableName);

// --- Longer runs, combined with other axes.

class MixedSchedules : public ::testing::TestWithParam<Pipeline> {};

TEST_P(MixedSchedules, FirstTwentyLossesEqualTheSingleRanks) {
  const Pipeline& pipeline = GetParam();
  ExpectClose(RunOrDie(Job(2, pipeline, 8, false, 20), {.steps = 20}), SingleRank(8, false, 20));
  EXPECT_LT(SingleRank(8, false, 20).back().event.loss(),
            SingleRank(8, false, 20).front().event.loss() - 0.1)
      << "nothing was learnt: the comparison is idle";
}

TEST_P(MixedSchedules, ComposeWithDataAndTensor) {
  const Pipeline& pipeline = GetParam();
  v1::JobSpec spec = Job(2, pipeline, 8, true);
  spec.mutable_parallelism()->set_data_parallel_replicate_degree(2);
  spec.mutable_parallelism()->set_tensor_parallel_degree(2);
  ExpectClose(RunOrDie(spec, {.steps = kSteps}), SingleRank(8, true, kSteps));
}

TEST_P(MixedSchedules, ComposeWithShardedData) {
  for (const int zero_stage : {1, 2, 3}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(fmt::format("ZeRO-{}{}", zero_stage, tied ? ", tied" : ""));
      v1::JobSpec spec = Job(2, GetParam(), 8, tied);
      spec.mutable_parallelism()->set_data_parallel_shard_degree(2);
      spec.mutable_parallelism()->set_zero_stage(zero_stage);
      ExpectClose(RunOrDie(spec, {.steps = kSteps}), SingleRank(8, tied, kSteps));
    }
  }
}

TEST_P(MixedSchedules, MessagesThatAwaitTheirReceiverEndToo) {
  // Boundaries of 16 KiB exceed what loopback copies at the send.
  const auto job = [](int stages, const Pipeline& pipeline) {
    v1::JobSpec spec = Job(stages, pipeline, 32, false, 2);
    spec.mutable_training()->set_micro_batch_size(4);
    return spec;
  };
  const std::vector<StepResult> expected = RunOrDie(job(1, {ScheduleKind::k1F1B, 1}), {.steps = 2});
  ExpectClose(RunOrDie(job(2, GetParam()), {.steps = 2}), expected);
  ExpectClose(RunOrDie(job(4, GetParam()), {.steps = 2}), expected);
}

TEST_P(MixedSchedules, RecomputedActivationsChangeNothing) {
  for (const char* mode : {"selective", "full"}) {
    v1::JobSpec spec = Job(2, GetParam(), 8, false);
    spec.mutable_activation_recomputation()->set_mode(mode);
    ExpectClose(RunOrDie(spec, {.steps = kSteps}), SingleRank(8, false, kSteps));
  }
}

TEST_P(MixedSchedules, OneStageSendsToItself) {
  const Pipeline& pipeline = GetParam();
  ExpectClose(RunOrDie(Job(1, pipeline, 4, true), {.steps = kSteps}), SingleRank(4, true, kSteps));
}

TEST_P(MixedSchedules, HeldOutLossIsTheSingleRanks) {
  const auto validated = [](v1::JobSpec spec) {
    spec.mutable_data()->set_validation_fraction(0.1);
    spec.mutable_training()->set_validation_samples(9);
    return RunOrDie(spec, {.steps = kSteps});
  };
  const std::vector<StepResult> expected = validated(Job(1, {ScheduleKind::k1F1B, 1}, 8, false));
  const std::vector<StepResult> actual = validated(Job(2, GetParam(), 8, false));
  ASSERT_TRUE(expected.back().event.has_validation_loss());
  EXPECT_NEAR(actual.back().event.validation_loss(), expected.back().event.validation_loss(), 1e-5);
  ExpectClose(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(Schedules, MixedSchedules, ::testing::ValuesIn(Pipelines()),
                         [](const auto& info) { return NameOf(info.param); });

TEST(Schedules, AutoRunsWhatItChose) {
  v1::JobSpec spec = Job(2, {ScheduleKind::k1F1B, 1}, 8, false);
  spec.mutable_parallelism()->set_pipeline_parallel_schedule("auto");
  spec.mutable_parallelism()->clear_pipeline_parallel_chunks();
  const auto plan = MakeUnplacedPlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->schedule_choice(0),
              ::testing::StartsWith("chosen: " + plan->schedule().name()));
  EXPECT_NE(plan->schedule().name(), "1F1B");
  ExpectClose(RunOrDie(spec, {.steps = kSteps}), SingleRank(8, false, kSteps));
}

TEST(Schedules, ARepeatIsBitIdentical) {
  const v1::JobSpec spec = Job(2, {ScheduleKind::kDualPipeV, 2}, 8, true);
  ExpectIdentical(RunOrDie(spec, {.steps = kSteps}), RunOrDie(spec, {.steps = kSteps}));
}

}  // namespace
}  // namespace troupe
