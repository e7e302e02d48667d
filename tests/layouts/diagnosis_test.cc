// Tests the diagnostics of a job's numbers: norms of blocks, and the origin of a non-finite value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temporary_directory.h"
#include "tests/layouts/training.h"
#include "worker/executor/block_norms.h"
#include "worker/executor/nonfinite.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

class Diagnosis : public testing::Test {
 protected:
  Diagnosis() : prefix_(directory_.path() + "/data") { WriteSmallDataset(prefix_); }

  TemporaryDirectory directory_;
  const std::string prefix_;
};

v1::JobSpec JobWithNorms(const Layout& layout, const std::string& prefix) {
  v1::JobSpec spec = SmallJob(layout, prefix, 4);
  spec.mutable_training()->set_norms_interval(2);
  return spec;
}

TEST_F(Diagnosis, NormsOfBlocksAddUpToTheModelsAndAreTheSameUnderEveryLayout) {
  const TrainResult single = Train(JobWithNorms({}, prefix_), {.steps = 4});
  ASSERT_TRUE(single.statuses[0].ok()) << single.statuses[0];
  EXPECT_TRUE(single.steps[0][0].event.norms().empty());
  const auto& expected = single.steps[0][1].event.norms();
  ASSERT_EQ(expected.size(), 6);
  EXPECT_EQ(expected[0].block(), "embedding");
  EXPECT_EQ(expected[2].block(), "block1 (D)");
  EXPECT_EQ(expected[5].block(), "head");
  const std::vector<Layout> layouts = {{.tensor = 2},
                                       {.pipe = 2},
                                       {.data = 2, .shard = 2, .zero_stage = 1},
                                       {.shard = 2, .zero_stage = 3},
                                       {.tensor = 2, .pipe = 2, .shard = 2, .zero_stage = 2}};
  for (size_t l = 0; l < layouts.size(); ++l) {
    SCOPED_TRACE(l);
    const TrainResult result = Train(JobWithNorms(layouts[l], prefix_), {.steps = 4});
    for (size_t rank = 0; rank < result.steps.size(); ++rank) {
      ASSERT_TRUE(result.statuses[rank].ok()) << result.statuses[rank];
      for (const StepResult& step : result.steps[rank]) {
        ASSERT_EQ(step.event.norms_size(), step.step % 2 == 0 ? 6 : 0);
        double sum = 0;
        for (const v1::BlockNorm& norm : step.event.norms())
          sum += norm.gradient() * norm.gradient();
        if (step.event.norms_size() > 0) {
          EXPECT_NEAR(std::sqrt(sum) / step.event.grad_norm(), 1, 1e-9);
        }
      }
      for (int i = 0; i < expected.size(); ++i) {
        const v1::BlockNorm& norm = result.steps[rank][1].event.norms(i);
        EXPECT_EQ(norm.block(), expected[i].block());
        EXPECT_NEAR(norm.gradient() / expected[i].gradient(), 1, 1e-4) << norm.block();
        EXPECT_NEAR(norm.parameter() / expected[i].parameter(), 1, 1e-5) << norm.block();
      }
    }
  }
}

// Fills the weight with this name if the rank holds it.
void Rig(Executor& executor, const std::string& name, float number) {
  for (const model::ParameterEntry& entry : executor.program().parameters) {
    const model::Value& value = executor.program().value(entry.value);
    if (value.name != name) continue;
    auto* const numbers = static_cast<float*>(executor.executable().Address(entry.value, 0));
    std::fill_n(numbers, value.elements(), number);
  }
}

TEST_F(Diagnosis, TheOperationWhoseOutputOverflowedIsNamedOnEveryRank) {
  for (const Layout& layout : {Layout{}, Layout{.tensor = 2}, Layout{.pipe = 2}, Layout{.data = 2},
                               Layout{.shard = 2, .zero_stage = 3}}) {
    const v1::JobSpec spec = SmallJob(layout, prefix_, 4);
    TrainOptions options{.steps = 2};
    options.before_steps = [](int, Executor& executor) {
      Rig(executor, "block1.mlp.gate_up_proj", 3e38f);
    };
    const TrainResult result = Train(spec, options);
    for (const Status& status : result.statuses) {
      EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << status;
      const std::string text(Message(status));
      EXPECT_THAT(text, HasSubstr("step 1: "));
      EXPECT_THAT(text, HasSubstr("is not finite"));
      EXPECT_THAT(
          text, HasSubstr("the first value that is not finite is an output of matmul block1.mlp."));
      EXPECT_EQ(text, std::string(Message(result.statuses[0])));
    }
  }
}

TEST_F(Diagnosis, AWeightThatIsNotFiniteIsNamedWithItsBlock) {
  const v1::JobSpec spec = SmallJob({.pipe = 2}, prefix_, 4);
  TrainOptions options{.steps = 1};
  options.before_steps = [](int, Executor& executor) {
    Rig(executor, "block3.mlp.down_proj", std::nanf(""));
  };
  for (const Status& status : Train(spec, options).statuses) {
    const std::string text(Message(status));
    EXPECT_THAT(text,
                HasSubstr("rank 1: the weight model.layers.1.mlp.down_proj.weight (block3 (D)) "));
    EXPECT_THAT(text, Not(HasSubstr("is an output of")));
  }
}

TEST_F(Diagnosis, ASkippedStepNamesWhatWasNotFinite) {
  v1::JobSpec spec = SmallJob({.data = 2}, prefix_, 4);
  spec.mutable_training()->set_on_nonfinite("skip_step");
  TrainOptions options{.steps = 2};
  options.before_steps = [](int, Executor& executor) {
    Rig(executor, "block1.mlp.gate_up_proj", 3e38f);
  };
  const TrainResult result = Train(spec, options);
  for (size_t rank = 0; rank < 2; ++rank) {
    ASSERT_TRUE(result.statuses[rank].ok()) << result.statuses[rank];
    ASSERT_EQ(result.steps[rank].size(), 2u);
    EXPECT_TRUE(result.steps[rank][0].event.skipped());
    EXPECT_THAT(result.steps[rank][0].nonfinite, HasSubstr("is not finite"));
  }
}

TEST(BlockNames, AreOfTheModelsBlocksInOrder) {
  EXPECT_EQ(BlockOf("embedding.table", 4), 0);
  EXPECT_EQ(BlockOf("block3.mlp.norm", 4), 4);
  EXPECT_EQ(BlockOf("head.norm", 4), 5);
  EXPECT_EQ(BlockName(0, "ADAD"), "embedding");
  EXPECT_EQ(BlockName(4, "ADAD"), "block3 (D)");
  EXPECT_EQ(BlockName(5, "ADAD"), "head");
}

}  // namespace
}  // namespace troupe
