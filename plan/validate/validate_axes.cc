#include "plan/validate/validate_axes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/blocks/pattern.h"
#include "plan/job/key_blocks.h"

namespace troupe {
namespace {

// The size of a stage's program, in steps of a ring; a block is about as much as four. If the
// backward pass is split, placing the saved values in memory takes time in proportion to the
// square: some seconds at this limit.
constexpr int64_t kMostStageSteps = int64_t{1} << 14;

// The letters of the blocks with experts, "E".
std::string ExpertBlocks() { return BlocksWith(&model::BlockKind::has_experts); }

// Rows of a microbatch on one context rank.
int64_t RowsOfMicrobatch(const v1::JobSpec& spec) {
  const int64_t context = std::max<int64_t>(1, spec.parallelism().context_parallel_degree());
  return spec.training().micro_batch_size() * spec.training().sequence_length() / context;
}

// Names this number of rows in a violation.
std::string RowsText(int64_t rows) {
  return fmt::format("the number of rows of a microbatch on a context rank, {},", rows);
}

void ValidateContextAxis(const v1::JobSpec& spec, const JobChoices& choices,
                         Violations* violations) {
  const auto& parallelism = spec.parallelism();
  const char* field = "parallelism.context_parallel_degree";
  const int64_t context = parallelism.context_parallel_degree();
  const int64_t tensor = parallelism.tensor_parallel_degree();
  if (context <= 1 || tensor < 1) return;
  const int64_t tokens = spec.training().sequence_length();
  if (tokens % (2 * context) != 0) {
    violations->AddIndivisible(
        field, context, fmt::format("training.sequence_length = {}", tokens),
        fmt::format("2 × {}: every rank has a head and a tail chunk", context));
  }
  if (choices.context_method != v1::CONTEXT_METHOD_ALL_TO_ALL) return;
  for (const auto& [name, heads] :
       {std::pair("model.num_attention_heads", spec.model().num_attention_heads()),
        std::pair("model.num_key_value_heads", spec.model().num_key_value_heads())}) {
    if (heads % (tensor * context) == 0) continue;
    violations->AddIndivisible(
        field, context, fmt::format("{} = {}", name, heads),
        fmt::format("tensor {} × context {}: all_to_all gives each rank whole heads "
                    "(context_parallel_method: ring does not)",
                    tensor, context));
  }
}

void ValidateProgramSize(const v1::JobSpec& spec, const JobChoices& choices,
                         Violations* violations) {
  const auto& parallelism = spec.parallelism();
  const auto pattern = model::ExpandPattern(spec.model().pattern());
  const int64_t stages = parallelism.pipeline_parallel_degree();
  const int64_t context = parallelism.context_parallel_degree();
  if (!pattern.ok() || stages < 1 || context < 1) return;
  const auto of_stage = [stages](int64_t blocks) { return (blocks + stages - 1) / stages; };
  const int64_t blocks = of_stage(static_cast<int64_t>(pattern->size()));
  const int64_t rings = choices.context_method == v1::CONTEXT_METHOD_ALL_TO_ALL
                            ? 0
                            : of_stage(model::CountBlocks(*pattern, &model::BlockKind::attends));
  if (rings == 0 || context - 1 <= (kMostStageSteps - 4 * blocks) / rings) return;
  violations->Add(
      "parallelism.context_parallel_degree",
      "is {}: {} blocks × 4 + {} attention blocks × {} = {} in a stage, above the limit "
      "of {}; raise parallelism.pipeline_parallel_degree",
      context, blocks, rings, context - 1, 4 * blocks + rings * (context - 1), kMostStageSteps);
}

void ValidateExpertAxis(const v1::JobSpec& spec, const JobChoices& choices,
                        Violations* violations) {
  const char* field = "parallelism.expert_parallel_degree";
  const int64_t expert = spec.parallelism().expert_parallel_degree();
  const int64_t tensor = spec.parallelism().tensor_parallel_degree();
  if (!model::HasExperts(spec.model().pattern())) {
    const auto refuse = [&](const char* key, int64_t degree) {
      violations->Add(key, "is {}, but model.pattern = \"{}\" has no block {}", degree,
                      spec.model().pattern().substr(0, 200), ExpertBlocks());
    };
    if (expert > 1) refuse(field, expert);
    if (spec.parallelism().has_expert_tensor_parallel_degree()) {
      refuse("parallelism.expert_tensor_parallel_degree",
             spec.parallelism().expert_tensor_parallel_degree());
    }
    return;
  }
  violations->AddUnlessDivides(field, expert, "model.num_experts", spec.model().num_experts());
  if (tensor < 1) return;
  const bool by_rows = spec.parallelism().sequence_parallel();
  if (tensor > 1 && expert > 1 && !by_rows) {
    violations->Add("parallelism.sequence_parallel",
                    "is false, but tensor_parallel_degree = {} with expert_parallel_degree = {} "
                    "requires true: each tensor rank routes its own rows",
                    tensor, expert);
  }
  const char* split = "parallelism.expert_tensor_parallel_degree";
  const bool is_set = spec.parallelism().has_expert_tensor_parallel_degree();
  const int64_t parts = spec.parallelism().expert_tensor_parallel_degree();
  if (is_set && parts != 1 && parts != tensor) {
    violations->Add(
        split,
        "is {}, must be 1 (experts are distributed over expert × tensor) or "
        "parallelism.tensor_parallel_degree = {} (the weights of each expert are split)",
        parts, tensor);
  } else if (is_set && parts == 1 && tensor > 1) {
    if (expert == 1 && !by_rows) {
      violations->Add("parallelism.sequence_parallel",
                      "is false, but {} = 1 with tensor_parallel_degree = {} requires true: each "
                      "tensor rank routes its own rows",
                      split, tensor);
    }
    if (expert >= 1 && spec.model().num_experts() % (expert * tensor) != 0) {
      violations->AddIndivisible(
          split, parts, fmt::format("model.num_experts = {}", spec.model().num_experts()),
          fmt::format(
              "expert_parallel_degree {} × tensor_parallel_degree {}, over which experts are "
              "distributed",
              expert, tensor));
    }
    const int64_t rows = RowsOfMicrobatch(spec);
    if (choices.expert_dispatch == v1::EXPERT_DISPATCH_ALL_GATHER && rows % tensor != 0) {
      violations->AddIndivisible(
          "parallelism.expert_dispatch", spec.parallelism().expert_dispatch(), RowsText(rows),
          fmt::format(
              "tensor_parallel_degree = {}: all_gather over expert × tensor needs equal parts",
              tensor));
    }
  } else if (spec.model().has_moe_intermediate_size() &&
             spec.model().moe_intermediate_size() < tensor) {
    violations->AddTooLarge(
        "parallelism.tensor_parallel_degree", tensor,
        fmt::format("model.moe_intermediate_size = {}", spec.model().moe_intermediate_size()));
  }
}

void ValidateTensorParts(const v1::JobSpec& spec, Violations* violations) {
  const auto& parallelism = spec.parallelism();
  if (!parallelism.has_tensor_parallel_parts()) return;
  const char* field = "parallelism.tensor_parallel_parts";
  const int64_t parts = parallelism.tensor_parallel_parts();
  if (parts == 1 || violations->Has(field)) return;
  const int64_t tensor = parallelism.tensor_parallel_degree();
  if (tensor == 1) {
    violations->Add(
        field, "is {}, but parallelism.tensor_parallel_degree = 1: tensor ranks exchange nothing",
        parts);
    return;
  }
  if (model::HasExperts(spec.model().pattern())) {
    violations->Add(
        field,
        "is {}, but model.pattern = \"{}\" has a block {}, whose routers need all rows at once",
        parts, spec.model().pattern().substr(0, 200), ExpertBlocks());
  }
  const int64_t rows = RowsOfMicrobatch(spec);
  const int64_t shares = parallelism.sequence_parallel() ? tensor : 1;
  if (rows % (parts * shares) != 0) {
    violations->AddIndivisible(
        field, parts, RowsText(rows),
        fmt::format("{} × {}, the tensor ranks that shard the rows", parts, shares));
  }
}

// Where there are fewer key-value heads than tensor ranks, several ranks hold the same head.
void ValidateKeyValueHeads(const v1::JobSpec& spec, Violations* violations) {
  const char* field = "parallelism.tensor_parallel_degree";
  const int64_t tensor = spec.parallelism().tensor_parallel_degree();
  const int64_t heads = spec.model().num_key_value_heads();
  if (tensor < 1 || heads < 1) return;
  if (heads % tensor != 0 && tensor % heads != 0) {
    violations->AddNotDivisor(
        field, tensor,
        fmt::format("model.num_key_value_heads = {} and is not a multiple of it", heads));
  }
  if (heads < tensor && spec.parallelism().shard_whole_matrices()) {
    violations->Add("parallelism.shard_whole_matrices",
                    "is true, but {} = {} is above model.num_key_value_heads = {}: ranks that "
                    "share a head would split it differently",
                    field, tensor, heads);
  }
}

}  // namespace

void ValidateAxes(const v1::JobSpec& spec, const JobChoices& choices, Violations* violations) {
  // Products of degrees out of range could overflow to 0, a divisor below.
  for (const char* const degree :
       {"tensor_parallel_degree", "context_parallel_degree", "expert_parallel_degree"}) {
    if (violations->Has(fmt::format("parallelism.{}", degree))) return;
  }
  const auto& model = spec.model();
  const char* field = "parallelism.tensor_parallel_degree";
  const int64_t tensor = spec.parallelism().tensor_parallel_degree();
  violations->AddUnlessDivides(field, tensor, "model.num_attention_heads",
                               model.num_attention_heads());
  ValidateKeyValueHeads(spec, violations);
  violations->AddUnlessDivides(field, tensor, "model.hidden_size", model.hidden_size());
  violations->AddUnlessDivides(field, tensor, "model.intermediate_size", model.intermediate_size());
  ValidateContextAxis(spec, choices, violations);
  ValidateProgramSize(spec, choices, violations);
  const auto& training = spec.training();
  const int64_t rows = training.micro_batch_size() * training.sequence_length();
  if (spec.parallelism().sequence_parallel() && rows > 0 && rows < tensor) {
    violations->Add("parallelism.sequence_parallel",
                    "is true, but the {} rows of a microbatch (training.micro_batch_size {} × "
                    "training.sequence_length {}) are below {} = {}",
                    rows, training.micro_batch_size(), training.sequence_length(), field, tensor);
  }
  ValidateTensorParts(spec, violations);
  // Sharding over expert alone requires a stated ZeRO stage.
  if (spec.parallelism().shard_whole_matrices() && !spec.parallelism().has_zero_stage()) {
    violations->Add("parallelism.shard_whole_matrices",
                    "is true, but parallelism.data_parallel_shard_degree = 1 and zero_stage is not "
                    "stated: no matrix is sharded");
  }
  if (tensor > model.vocab_size() && model.vocab_size() > 0) {
    violations->AddTooLarge(field, tensor,
                            fmt::format("model.vocab_size = {}", model.vocab_size()));
  }
  ValidateExpertAxis(spec, choices, violations);
}

}  // namespace troupe
