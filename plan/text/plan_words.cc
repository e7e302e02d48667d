#include "plan/text/plan_words.h"

#include "base/status.h"
#include "model/blocks/pattern.h"
#include "model/program/placement.h"
#include "plan/cost/slowest_step.h"
#include "plan/job/key_warnings.h"
#include "plan/layout/bucket_origin.h"
#include "plan/layout/islands.h"
#include "plan/text/precision_words.h"

namespace troupe {
namespace {

// The plan warns where a chunk is heavier than the mean by more than this factor.
constexpr double kImbalanceToMention = 1.25;

// "sharded over tensor 2 by rows, 130 each"; "whole" on one rank.
std::string RowsOverTensor(int64_t rows, int tensor) {
  if (tensor == 1) return "whole";
  const int64_t larger = (rows + tensor - 1) / tensor;
  const int64_t smaller = rows / tensor;
  return larger == smaller ? fmt::format("sharded over tensor {} by rows, {} each", tensor, larger)
                           : fmt::format("sharded over tensor {} by rows, {} of {} and {} of {}",
                                         tensor, rows - smaller * tensor, larger,
                                         tensor - (rows - smaller * tensor), smaller);
}

}  // namespace

std::vector<std::string> ShardingLines(const DecodedJob& job) {
  const int shards = job.mesh.degree(model::Axis::kDataShard);
  const int stage = job.zero_stage;
  if (stage == 0) return {};
  const char* what = stage == 1   ? "optimizer state and master weights"
                     : stage == 2 ? "optimizer state, master weights and gradients"
                                  : "optimizer state, master weights, gradients and parameters";
  const int expert = job.mesh.degree(model::Axis::kExpert);
  const std::string ranks =
      shards > 1
          ? fmt::format("each of the {} data_shard ranks keeps, of every parameter,", shards)
          : fmt::format(
                "each of the {} expert ranks keeps, of every parameter except those of experts,",
                expert);
  std::string line = fmt::format("{} one block of rows of {} (ZeRO-{})", ranks, what, stage);
  const int run = job.shard_run;
  if (run > 0) {
    line += fmt::format(
        "; once per step each rank gathers 1/{} of the parameters and keeps it until the step's "
        "end; runs of {} neighbours gather parameters from it for each forward and each backward "
        "of a microbatch; gradients are reduce-scattered within a run first",
        run * expert, run);
  } else if (stage == 3) {
    line += job.keeps_gathered
                ? "; parameters are gathered once per step and kept until its end"
                : "; parameters are gathered for each forward and each backward of a microbatch";
  }
  std::vector<std::string> lines = {std::move(line)};
  if (job.spec.parallelism().shard_whole_matrices()) {
    lines.push_back(
        "matrices, except vocabulary tables, are not split into such blocks: each is whole, within "
        "its tensor slice, on one rank, chosen so that ranks have about the same amount");
  }
  return lines;
}

std::vector<std::string> OwnershipLines(const DecodedJob& job, const v1::Plan& plan) {
  const model::ModelConfig& model = job.model;
  const bool spreads_experts_over_tensor = job.spreads_experts_over_tensor;
  const int tensor = plan.mesh().tensor();
  const int last = plan.chunks().empty() ? 0 : plan.chunks(plan.chunks_size() - 1).pipe_rank();
  const std::string rows = RowsOverTensor(model.vocab_size, tensor);
  const char* whole = tensor == 1 ? "whole" : "a copy on every tensor rank";
  std::vector<std::string> lines = {
      "ownership is established in the order tensor, pipe, "
      "data_shard, expert"};
  if (model.tie_word_embeddings && last > 0) {
    lines.push_back(
        fmt::format("model.embed_tokens.weight: stages 0 and {}, {}; tied to the head: its "
                    "gradients are summed over both stages, and stage 0 counts it in the norm",
                    last, rows));
  } else if (model.tie_word_embeddings) {
    lines.push_back(fmt::format(
        "model.embed_tokens.weight: stage 0, {}; tied to the head of the same stage", rows));
  } else {
    lines.push_back(fmt::format("model.embed_tokens.weight: stage 0, {}", rows));
    lines.push_back(fmt::format("lm_head.weight: stage {}, {}", last, rows));
  }
  lines.push_back(fmt::format("model.norm.weight: stage {}, {}", last, whole));
  lines.push_back(fmt::format(
      "input_layernorm.weight, post_attention_layernorm.weight: the stage of their block, {}",
      whole));
  if (model::HasExperts(model.blocks)) {
    const int64_t experts = model.experts.num_experts;
    const int64_t ranks = plan.mesh().expert() * (spreads_experts_over_tensor ? tensor : 1);
    lines.push_back(fmt::format(
        "mlp.experts.*: the stage of their block, {} of {} experts on each {} rank{}; "
        "mlp.gate.weight: a copy on each; mlp.shared_experts.*: a copy on each expert rank{}",
        experts / ranks, experts, spreads_experts_over_tensor ? "expert × tensor" : "expert",
        spreads_experts_over_tensor || tensor == 1
            ? ""
            : ", with the weights of each sharded over tensor",
        tensor == 1 ? "" : ", sharded over tensor"));
  }
  return lines;
}

std::vector<std::string> WarningLines(const DecodedJob& job, const v1::Plan& plan) {
  const v1::JobSpec& spec = job.spec;
  std::vector<std::string> lines;
  if (plan.imbalance() > kImbalanceToMention) {
    lines.push_back(
        fmt::format("the heaviest {} costs {:.2f} times the mean, so the others wait for it",
                    plan.chunks_size() > plan.mesh().pipe() ? "chunk" : "stage", plan.imbalance()));
  }
  if (plan.schedule().microbatches() < plan.mesh().pipe()) {
    lines.push_back(fmt::format(
        "{} microbatches are fewer than {} stages, so at most {} stages compute at the same time",
        plan.schedule().microbatches(), plan.mesh().pipe(), plan.schedule().microbatches()));
  }
  if (spec.model().has_max_position_embeddings() &&
      spec.training().sequence_length() > spec.model().max_position_embeddings()) {
    lines.push_back(fmt::format(
        "training.sequence_length is {}, above the {} positions of model.max_position_embeddings",
        spec.training().sequence_length(), spec.model().max_position_embeddings()));
  }
  const double hang_seconds = spec.fault_tolerance().hang_seconds();
  if (spec.fault_tolerance().has_hang_seconds() && hang_seconds < DefaultHangSeconds()) {
    lines.push_back(
        fmt::format("fault_tolerance.hang_seconds = {} has no effect: it can only lengthen the "
                    "limit, which is {} until a job's pace is known and then follows the pace",
                    hang_seconds, DefaultHangSeconds()));
  }
  for (std::string& line : KeyWarnings(spec)) lines.push_back(std::move(line));
  for (std::string& line : IdlePrecisionLines(job, plan)) lines.push_back(std::move(line));
  const v1::BucketSpec& bucket = spec.parallelism().bucket();
  for (std::string& line : UnevenPaddingLines(bucket, job.bucket_effects, plan))
    lines.push_back(std::move(line));
  for (std::string& line : InheritedBucketLines(bucket, job.bucket_effects, plan))
    lines.push_back(std::move(line));
  for (std::string& line : CrossingLines(plan)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace troupe
