// The enumerated keys that layouts, programs and runs depend on, as enums: code that depends on one
// of them reads it here and compares no words. The key `devices` remains a name, because it is the
// key of a row of traits (plan/device/device_traits.h). Pure.
#ifndef TROUPE_PLAN_JOB_JOB_CHOICES_H_
#define TROUPE_PLAN_JOB_JOB_CHOICES_H_

#include <optional>

#include "model/optimizers/optimizer_kind.h"
#include "model/passes/passes.h"
#include "model/program/float8.h"
#include "model/program/router_score.h"
#include "model/program/value.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

struct JobChoices {
  model::RouterScore router_score = model::RouterScore::kSoftmax;
  model::DType compute_dtype = model::DType::kFloat32;
  std::optional<model::DType> param_dtype;  // none: the job does not state mixed_precision
  model::DType reduce_dtype = model::DType::kFloat32;
  model::DType buffer_dtype = model::DType::kFloat32;
  model::Float8Recipe float8 = model::Float8Recipe::kNone;
  const model::OptimizerKind* optimizer = &model::kAdamWOptimizer;
  v1::OnNonfinite on_nonfinite = v1::ON_NONFINITE_FAIL;
  v1::DecayType decay_type = v1::DECAY_TYPE_CONSTANT;
  v1::ContextMethod context_method = v1::CONTEXT_METHOD_RING;
  v1::ExpertDispatch expert_dispatch = v1::EXPERT_DISPATCH_ALL_TO_ALL;
  model::Recomputation::Mode recomputation = model::Recomputation::Mode::kNone;
  bool saves_asynchronously = true;
};

// Decodes the words of `spec`. An absent key, or a word that ValidateKeys refuses, has value 0 of
// its enum. REQUIRES: defaults are filled in.
JobChoices ChoicesOf(const v1::JobSpec& spec);

// The router_score of ChoicesOf, for a model without a job.
model::RouterScore RouterScoreOf(const v1::ModelSpec& spec);

// The optimizer of ChoicesOf, for a job whose defaults are not filled in yet.
const model::OptimizerKind& OptimizerOf(const v1::OptimizerSpec& spec);

// Rules on a single choice, for code that has no decoded job: whether some matmuls are in FP8, and
// whether training continues while ranks write the copy of their state.
bool UsesFloat8(const v1::TrainingSpec& training);
bool SavesAsynchronously(const v1::CheckpointSpec& checkpoint);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_CHOICES_H_
