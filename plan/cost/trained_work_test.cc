#include "plan/cost/trained_work.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/select_trained.h"
#include "plan/cost/estimate.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/make_plan.h"
#include "plan/validate/decoded_job.h"

namespace troupe {
namespace {

constexpr int64_t kTokens = 32;

model::ModelConfig Model() {
  v1::JobSpec spec;
  for (const char* const key : {"model.pattern=(AD)x2", "model.hidden_size=64",
                                "model.num_attention_heads=4", "model.intermediate_size=96"})
    EXPECT_TRUE(ApplyOverride(key, &spec).ok());
  ApplyDefaults(&spec);
  return MakeModelConfig(spec.model()).value();
}

TrainedWork WorkOf(const std::vector<std::string>& globs) {
  const model::ModelConfig model = Model();
  const auto trained = model::SelectTrained(model, globs);
  EXPECT_TRUE(trained.ok()) << trained.status();
  return TrainedWorkOf(model, *trained, kTokens).value();
}

TEST(TrainedWork, OfAllParametersIsThatOfTheModel) {
  const model::ModelConfig model = Model();
  for (const std::vector<std::string>& globs : {std::vector<std::string>{}, {"*"}}) {
    const TrainedWork work = WorkOf(globs);
    EXPECT_EQ(work.parameters, ModelParameters(model));
    EXPECT_DOUBLE_EQ(work.flops, ModelFlops(model, 1, kTokens));
    EXPECT_DOUBLE_EQ(work.attention_flops, AttentionFlops(model, 1, kTokens));
  }
}

TEST(TrainedWork, OfTheHeadIsForwardAndItsTwoGradients) {
  const model::ModelConfig model = Model();
  const TrainedWork work = WorkOf({"lm_head.weight"});
  EXPECT_EQ(work.parameters, model.vocab_size * model.hidden_size);
  // The head's input needs no gradient.
  EXPECT_DOUBLE_EQ(work.flops,
                   ModelFlops(model, 1, kTokens) / 3 + HeadForwardFlops(model, 1, kTokens));
  EXPECT_DOUBLE_EQ(work.attention_flops, AttentionFlops(model, 1, kTokens) / 3);
}

TEST(TrainedWork, OfANormInTheMiddleHasNoGradientsOfMatrices) {
  const model::ModelConfig model = Model();
  const TrainedWork work = WorkOf({"model.layers.1.input_layernorm.weight"});
  EXPECT_EQ(work.parameters, model.hidden_size);
  // Forward of all; gradients of inputs of the head and of the second layer.
  const double second = BlockForwardFlops(model, 'A', 1, kTokens) +
                        BlockForwardFlops(model, 'D', 1, kTokens) +
                        AttentionFlops(model, 1, kTokens) / 6;
  EXPECT_DOUBLE_EQ(
      work.flops, ModelFlops(model, 1, kTokens) / 3 + HeadForwardFlops(model, 1, kTokens) + second);
}

TEST(TrainedWork, MovesCutsAwayFromBlocksThatHaveNoBackward) {
  v1::JobSpec spec;
  for (const char* const key :
       {"model={pattern: (AD)x8, hidden_size: 64, num_attention_heads: 4}", "data.train=/d",
        "checkpoint.initial_load=/c", "training.sequence_length=32",
        "parallelism.pipeline_parallel_degree=2"})
    EXPECT_TRUE(ApplyOverride(key, &spec).ok());
  ApplyDefaults(&spec);
  const auto first_blocks = [&] {
    const auto plan = MakeUnplacedPlan(spec);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan->chunks(0).block_count();
  };
  const int all = first_blocks();
  spec.mutable_model()->add_trainable("model.layers.7.*");
  EXPECT_GT(first_blocks(), all);
}

}  // namespace
}  // namespace troupe
