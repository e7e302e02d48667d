#include "plan/job/job_choices.h"

#include <gtest/gtest.h>

#include "plan/job/job_defaults.h"
#include "plan/job/key_schema.h"

namespace troupe {
namespace {

TEST(JobChoicesTest, EveryWordIsDecoded) {
  v1::JobSpec spec;
  spec.mutable_model()->set_router_score("sigmoid");
  v1::TrainingSpec& training = *spec.mutable_training();
  training.set_compute_dtype("bfloat16");
  training.mutable_mixed_precision()->set_param("float32");
  training.mutable_mixed_precision()->set_reduce("bfloat16");
  training.mutable_mixed_precision()->set_buffer("bfloat16");
  training.set_on_nonfinite("skip_step");
  spec.mutable_lr_schedule()->set_decay_type("wsd");
  spec.mutable_parallelism()->set_context_parallel_method("all_to_all");
  spec.mutable_parallelism()->set_expert_dispatch("all_gather");
  spec.mutable_checkpoint()->set_async_mode("disabled");
  const JobChoices choices = ChoicesOf(spec);
  EXPECT_EQ(choices.router_score, model::RouterScore::kSigmoid);
  EXPECT_EQ(choices.compute_dtype, model::DType::kBFloat16);
  EXPECT_EQ(choices.param_dtype, model::DType::kFloat32);
  EXPECT_EQ(choices.reduce_dtype, model::DType::kBFloat16);
  EXPECT_EQ(choices.buffer_dtype, model::DType::kBFloat16);
  EXPECT_EQ(choices.on_nonfinite, v1::ON_NONFINITE_SKIP_STEP);
  EXPECT_EQ(choices.decay_type, v1::DECAY_TYPE_WSD);
  EXPECT_EQ(choices.context_method, v1::CONTEXT_METHOD_ALL_TO_ALL);
  EXPECT_EQ(choices.expert_dispatch, v1::EXPERT_DISPATCH_ALL_GATHER);
  EXPECT_FALSE(choices.saves_asynchronously);
}

// The enums of the model have the names of the words.
TEST(JobChoicesTest, EveryFloat8RecipeIsTheModelsOfThatName) {
  v1::JobSpec spec;
  const auto* const field = v1::Float8Spec::descriptor()->FindFieldByName("recipe");
  for (const std::string& word : WordsOf(*field)) {
    spec.mutable_training()->mutable_float8()->set_recipe(word);
    EXPECT_EQ(model::Name(ChoicesOf(spec).float8), word);
    EXPECT_EQ(UsesFloat8(spec.training()), word != "none");
  }
}

TEST(JobChoicesTest, EveryOptimizerIsTheModelsOfThatName) {
  v1::JobSpec spec;
  const auto* const field = v1::OptimizerSpec::descriptor()->FindFieldByName("name");
  const std::vector<std::string> words = WordsOf(*field);
  EXPECT_EQ(words.size(), model::OptimizerKinds().size());
  for (const std::string& word : words) {
    spec.mutable_optimizer()->set_name(word);
    EXPECT_EQ(ChoicesOf(spec).optimizer->name, word);
  }
}

TEST(JobChoicesTest, EveryRecomputationModeIsAnother) {
  using Mode = model::Recomputation::Mode;
  v1::JobSpec spec;
  const auto mode_of = [&](const char* word) {
    spec.mutable_activation_recomputation()->set_mode(word);
    return ChoicesOf(spec).recomputation;
  };
  EXPECT_EQ(mode_of("none"), Mode::kNone);
  EXPECT_EQ(mode_of("selective"), Mode::kSelective);
  EXPECT_EQ(mode_of("full"), Mode::kFull);
}

TEST(JobChoicesTest, DefaultsOfTheStructAreThoseOfAJob) {
  v1::JobSpec spec;
  ApplyDefaults(&spec);
  const JobChoices job = ChoicesOf(spec), none;
  EXPECT_EQ(job.router_score, none.router_score);
  EXPECT_EQ(job.compute_dtype, none.compute_dtype);
  EXPECT_EQ(job.param_dtype, none.param_dtype);
  EXPECT_EQ(job.reduce_dtype, none.reduce_dtype);
  EXPECT_EQ(job.buffer_dtype, none.buffer_dtype);
  EXPECT_EQ(job.float8, none.float8);
  EXPECT_EQ(job.optimizer, none.optimizer);
  EXPECT_EQ(job.on_nonfinite, none.on_nonfinite);
  EXPECT_EQ(job.decay_type, none.decay_type);
  EXPECT_EQ(job.context_method, none.context_method);
  EXPECT_EQ(job.expert_dispatch, none.expert_dispatch);
  EXPECT_EQ(job.recomputation, none.recomputation);
  EXPECT_EQ(job.saves_asynchronously, none.saves_asynchronously);
}

}  // namespace
}  // namespace troupe
