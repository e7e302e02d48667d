#include "plan/job/job_choices.h"

#include <string>

#include "plan/job/key_schema.h"

namespace troupe {
namespace {

model::DType DTypeOf(const std::string& word) {
  return DecodeWord<v1::ComputeDtype>(word) == v1::COMPUTE_DTYPE_BFLOAT16 ? model::DType::kBFloat16
                                                                          : model::DType::kFloat32;
}

model::Float8Recipe Float8RecipeOf(const std::string& word) {
  switch (DecodeWord<v1::Float8Recipe>(word)) {
    case v1::FLOAT8_RECIPE_DELAYED:
      return model::Float8Recipe::kDelayed;
    case v1::FLOAT8_RECIPE_CURRENT:
      return model::Float8Recipe::kCurrent;
    case v1::FLOAT8_RECIPE_BLOCKWISE:
      return model::Float8Recipe::kBlockwise;
    default:
      return model::Float8Recipe::kNone;
  }
}

model::Recomputation::Mode RecomputationModeOf(const std::string& word) {
  switch (DecodeWord<v1::RecomputationMode>(word)) {
    case v1::RECOMPUTATION_MODE_SELECTIVE:
      return model::Recomputation::Mode::kSelective;
    case v1::RECOMPUTATION_MODE_FULL:
      return model::Recomputation::Mode::kFull;
    default:
      return model::Recomputation::Mode::kNone;
  }
}

}  // namespace

model::RouterScore RouterScoreOf(const v1::ModelSpec& spec) {
  return DecodeWord<v1::RouterScore>(spec.router_score()) == v1::ROUTER_SCORE_SIGMOID
             ? model::RouterScore::kSigmoid
             : model::RouterScore::kSoftmax;
}

const model::OptimizerKind& OptimizerOf(const v1::OptimizerSpec& spec) {
  const model::OptimizerKind* const kind = model::FindOptimizer(spec.name());
  return kind == nullptr ? model::kAdamWOptimizer : *kind;
}

bool UsesFloat8(const v1::TrainingSpec& training) {
  return Float8RecipeOf(training.float8().recipe()) != model::Float8Recipe::kNone;
}

bool SavesAsynchronously(const v1::CheckpointSpec& checkpoint) {
  return DecodeWord<v1::AsyncMode>(checkpoint.async_mode()) == v1::ASYNC_MODE_ASYNC;
}

JobChoices ChoicesOf(const v1::JobSpec& spec) {
  const v1::TrainingSpec& training = spec.training();
  const v1::MixedPrecision& mixed = training.mixed_precision();
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  JobChoices choices;
  choices.router_score = RouterScoreOf(spec.model());
  choices.compute_dtype = DTypeOf(training.compute_dtype());
  if (mixed.has_param()) choices.param_dtype = DTypeOf(mixed.param());
  choices.reduce_dtype = DTypeOf(mixed.reduce());
  choices.buffer_dtype = DTypeOf(mixed.buffer());
  choices.float8 = Float8RecipeOf(training.float8().recipe());
  choices.optimizer = &OptimizerOf(spec.optimizer());
  choices.on_nonfinite = DecodeWord<v1::OnNonfinite>(training.on_nonfinite());
  choices.decay_type = DecodeWord<v1::DecayType>(spec.lr_schedule().decay_type());
  choices.context_method = DecodeWord<v1::ContextMethod>(parallelism.context_parallel_method());
  choices.expert_dispatch = DecodeWord<v1::ExpertDispatch>(parallelism.expert_dispatch());
  choices.recomputation = RecomputationModeOf(spec.activation_recomputation().mode());
  choices.saves_asynchronously = SavesAsynchronously(spec.checkpoint());
  return choices;
}

}  // namespace troupe
