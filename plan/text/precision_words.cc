#include "plan/text/precision_words.h"

#include <fmt/format.h>

#include "base/status.h"
#include "model/program/builder.h"
#include "plan/job/job_choices.h"
#include "plan/layout/mesh.h"

namespace troupe {
namespace {

int64_t RanksOf(const Mesh& mesh, const model::CollectiveGroup& group) {
  return model::GroupSize({.degrees = mesh.degrees(), .coordinates = {}}, group);
}

// Whether the first and the last stage, on different ranks, hold the same table.
bool SumsOverOwners(const DecodedJob& job, const v1::Plan& plan) {
  return job.model.tie_word_embeddings && !plan.chunks().empty() &&
         plan.chunks(0).pipe_rank() != plan.chunks(plan.chunks_size() - 1).pipe_rank();
}

}  // namespace

std::vector<std::string> IdlePrecisionLines(const DecodedJob& job, const v1::Plan& plan) {
  const JobChoices& choices = job.choices;
  const Mesh mesh(plan.mesh());
  std::vector<std::string> lines;
  const bool shards = job.zero_stage > 0 && RanksOf(mesh, model::ShardGroup()) > 1;
  if (choices.param_dtype == model::DType::kFloat32 &&
      choices.compute_dtype == model::DType::kBFloat16 && !shards) {
    lines.push_back(
        "training.mixed_precision.param = float32 has no effect: no parameters are sharded, so "
        "none are gathered");
  }
  if (choices.reduce_dtype == model::DType::kBFloat16 && RanksOf(mesh, model::DataGroup()) == 1 &&
      !SumsOverOwners(job, plan)) {
    lines.push_back(
        "training.mixed_precision.reduce = bfloat16 has no effect: no two ranks reduce gradients");
  }
  return lines;
}

std::string IntendedPrecision(const v1::JobSpec& spec) {
  const v1::TrainingSpec& training = spec.training();
  std::string text = training.compute_dtype();
  const v1::MixedPrecision& mixed = training.mixed_precision();
  if (mixed.has_param()) text += fmt::format(", param {}", mixed.param());
  if (mixed.has_reduce()) text += fmt::format(", reduce {}", mixed.reduce());
  if (mixed.has_buffer()) text += fmt::format(", buffer {}", mixed.buffer());
  if (UsesFloat8(training)) {
    text += fmt::format(", float8 {}", training.float8().recipe());
  }
  return text;
}

}  // namespace troupe
