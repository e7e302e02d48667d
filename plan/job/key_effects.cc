#include "plan/job/key_effects.h"

#include <fmt/format.h>

#include <initializer_list>
#include <optional>

#include "model/blocks/pattern.h"
#include "plan/job/job_choices.h"
#include "plan/job/job_rules.h"
#include "plan/job/key_blocks.h"
#include "plan/job/key_path.h"
#include "plan/job/key_schema.h"

namespace troupe {
namespace {

using model::BlockKind;

bool HasBlock(const v1::JobSpec& spec, bool BlockKind::*trait) {
  return model::HasBlock(spec.model().pattern(), trait);
}

// Returns why a key of blocks with `trait` has no effect; empty where the pattern has such a block.
std::string Without(const v1::JobSpec& spec, bool BlockKind::*trait) {
  if (HasBlock(spec, trait)) return "";
  return fmt::format("model.pattern = \"{}\" has no block {}",
                     spec.model().pattern().substr(0, 200), BlocksWith(trait));
}

std::string OfAttention(const v1::JobSpec& spec) { return Without(spec, &BlockKind::attends); }

std::string IntermediateSize(const v1::JobSpec& spec) {
  // The experts use this size too unless theirs is stated.
  const v1::ModelSpec& model = spec.model();
  const bool has_experts = HasBlock(spec, &BlockKind::has_experts);
  if (has_experts && model.moe_intermediate_size() == model.intermediate_size()) return "";
  return Without(spec, &BlockKind::reads_intermediate_size);
}

std::string InitializerRange(const v1::JobSpec& spec) {
  if (spec.model().has_from()) return "the weights of model.from are read";
  return spec.checkpoint().has_initial_load() ? "the weights of checkpoint.initial_load are read"
                                              : "";
}

std::string BlendWeight(const v1::JobSpec& spec) {
  return spec.data().blend_size() > 1 ? ""
                                      : "data.blend has only one entry, which provides all samples";
}

std::string OfValidation(const v1::JobSpec& spec) {
  if (HoldsOutSamples(spec.data())) return "";
  return "nothing is held out: neither data.validation nor data.validation_fraction is stated";
}

// Returns why a key with an interval in steps has no effect; empty where the interval is at most
// training.steps.
std::string BeyondTheEnd(const v1::JobSpec& spec, int64_t interval) {
  if (interval <= spec.training().steps()) return "";
  return fmt::format("training ends at step {}", spec.training().steps());
}

std::string NormsInterval(const v1::JobSpec& spec) {
  return BeyondTheEnd(spec, spec.training().norms_interval());
}

std::string Float8Recipe(const v1::JobSpec& spec) {
  const bool has_experts = HasBlock(spec, &BlockKind::has_experts);
  const bool shared = has_experts && spec.model().num_shared_experts() > 0;
  if (HasBlock(spec, &BlockKind::has_linear_layers) || shared) return "";
  return "no block has linear layers, and matmuls of experts do not use FP8";
}

int64_t GradientRanks(const v1::ParallelismSpec& parallelism) {
  return parallelism.data_parallel_replicate_degree() * parallelism.data_parallel_shard_degree() *
         parallelism.context_parallel_degree() * parallelism.expert_parallel_degree();
}

std::string OfBuckets(const v1::JobSpec& spec) {
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  return GradientRanks(parallelism) > 1 || SplitsRowsOverTensor(parallelism)
             ? ""
             : "no gradients are sent between ranks";
}

int64_t Replicas(const v1::ParallelismSpec& parallelism) {
  return parallelism.data_parallel_replicate_degree() * parallelism.context_parallel_degree();
}

// Where every gradient is reduced separately, it does not matter which gradients form a bucket.
std::string BucketElements(const v1::JobSpec& spec) {
  if (const std::string why = OfBuckets(spec); !why.empty()) return why;
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  if (GradientRanks(parallelism) == 1)
    return "gradients are reduced over tensor only, each by itself";
  if (parallelism.zero_stage() == 1 && Replicas(parallelism) == 1)
    return "parallelism.zero_stage is 1 and there are no replicas: each gradient is "
           "reduce-scattered by itself";
  return "";
}

std::string BucketPadding(const v1::JobSpec& spec) {
  if (const std::string why = OfBuckets(spec); !why.empty()) return why;
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  if (GradientRanks(parallelism) == 1)
    return "gradients are reduced over tensor only, each by itself";
  const int64_t stage = parallelism.zero_stage();
  if (stage == 0 || (stage > 1 && Replicas(parallelism) > 1)) return "";
  return fmt::format(
      "parallelism.zero_stage is {}{}: gradients are reduce-scattered by rows, and no whole bucket "
      "is reduced",
      stage, stage > 1 ? " and there are no replicas" : "");
}

v1::DecayType DecayTypeOf(const v1::JobSpec& spec) {
  return DecodeWord<v1::DecayType>(spec.lr_schedule().decay_type());
}

std::string DecayTypeIs(const v1::JobSpec& spec) {
  return fmt::format("lr_schedule.decay_type is {}", spec.lr_schedule().decay_type());
}

// Returns why a key of another optimizer has no effect.
std::string Optimizes(const v1::JobSpec& spec, const model::OptimizerKind& kind) {
  if (&OptimizerOf(spec.optimizer()) == &kind) return "";
  return fmt::format("optimizer.name is {}", spec.optimizer().name());
}

std::string OfAdamW(const v1::JobSpec& spec) { return Optimizes(spec, model::kAdamWOptimizer); }

std::string OfSgd(const v1::JobSpec& spec) { return Optimizes(spec, model::kSgdOptimizer); }

std::string NoWeightDecay(const v1::JobSpec& spec) {
  return spec.optimizer().weight_decay() == 0 ? "optimizer.weight_decay is 0" : "";
}

std::string DecaySteps(const v1::JobSpec& spec) {
  const v1::DecayType type = DecayTypeOf(spec);
  const bool ends = type != v1::DECAY_TYPE_CONSTANT && type != v1::DECAY_TYPE_INVERSE_SQRT;
  return ends ? "" : DecayTypeIs(spec) + ", which has no end";
}

std::string DecayRatio(const v1::JobSpec& spec) {
  return DecayTypeOf(spec) == v1::DECAY_TYPE_WSD ? "" : DecayTypeIs(spec) + ", not wsd";
}

std::string MinLrFactor(const v1::JobSpec& spec) {
  const bool is_constant = DecayTypeOf(spec) == v1::DECAY_TYPE_CONSTANT;
  return is_constant ? DecayTypeIs(spec) + ": the rate never decreases" : "";
}

std::string OfTensor(const v1::JobSpec& spec) {
  const int64_t degree = spec.parallelism().tensor_parallel_degree();
  return degree == 1 ? "parallelism.tensor_parallel_degree is 1" : "";
}

std::string ContextMethod(const v1::JobSpec& spec) {
  const int64_t degree = spec.parallelism().context_parallel_degree();
  return degree == 1 ? "parallelism.context_parallel_degree is 1" : "";
}

std::string ExpertDispatch(const v1::JobSpec& spec) {
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  if (parallelism.expert_parallel_degree() > 1 || SpreadsExpertsOverTensor(parallelism)) return "";
  return "parallelism.expert_parallel_degree is 1: every rank has all experts";
}

std::string NumLayers(const v1::JobSpec& spec) {
  const auto mode = DecodeWord<v1::RecomputationMode>(spec.activation_recomputation().mode());
  return mode != v1::RECOMPUTATION_MODE_NONE ? "" : "activation_recomputation.mode is none";
}

std::string OfCheckpoints(const v1::JobSpec& spec) {
  return WillHaveCheckpointFolder(spec) ? ""
                                        : "checkpoint.folder is \"\": there are no checkpoints";
}

std::string CheckpointInterval(const v1::JobSpec& spec) {
  const std::string why = OfCheckpoints(spec);
  return why.empty() ? BeyondTheEnd(spec, spec.checkpoint().interval()) : why;
}

std::string IntervalSeconds(const v1::JobSpec& spec) {
  if (const std::string why = OfCheckpoints(spec); !why.empty()) return why;
  const int64_t steps = spec.checkpoint().interval();
  return steps > 0 ? fmt::format("checkpoint.interval is {} steps", steps) : "";
}

std::string KeepEveryNSteps(const v1::JobSpec& spec) {
  const v1::CheckpointSpec& checkpoint = spec.checkpoint();
  if (const std::string why = OfCheckpoints(spec); !why.empty()) return why;
  if (checkpoint.has_keep_latest_k() && checkpoint.keep_latest_k() == 0) {
    return "checkpoint.keep_latest_k is 0: all are kept";
  }
  return BeyondTheEnd(spec, checkpoint.keep_every_n_steps());
}

std::string AllowLayoutChange(const v1::JobSpec& spec) {
  const v1::ParallelismSpec& parallelism = spec.parallelism();
  const int64_t ranks =
      parallelism.data_parallel_replicate_degree() * parallelism.data_parallel_shard_degree();
  return ranks > 1 ? "" : "both data_parallel degrees are 1, so there is no smaller layout";
}

std::string OfXla(const v1::JobSpec& spec) {
  const std::optional<v1::Devices> devices = FindWord<v1::Devices>(spec.devices());
  if (!devices.has_value() || devices == v1::DEVICES_XLA) return "";
  return fmt::format("devices is {}, not xla", spec.devices());
}

constexpr ConditionalKey kKeys[] = {
    {"model.num_attention_heads", OfAttention},
    {"model.num_key_value_heads", OfAttention},
    {"model.head_dim", OfAttention},
    {"model.rope_theta", OfAttention},
    {"model.rope_scaling.rope_type", OfAttention},
    {"model.rope_scaling.factor", OfAttention},
    {"model.rope_scaling.low_freq_factor", OfAttention},
    {"model.rope_scaling.high_freq_factor", OfAttention},
    {"model.rope_scaling.original_max_position_embeddings", OfAttention},
    {"model.intermediate_size", IntermediateSize},
    {"model.initializer_range", InitializerRange},
    {"data.blend.weight", BlendWeight},
    {"training.validation_samples", OfValidation, true},
    {"training.norms_interval", NormsInterval},
    {"training.float8.recipe", Float8Recipe},
    {"training.mixed_precision.buffer", OfAttention},
    {"optimizer.beta1", OfAdamW, true},
    {"optimizer.beta2", OfAdamW, true},
    {"optimizer.eps", OfAdamW, true},
    {"optimizer.momentum", OfSgd, true},
    {"optimizer.nesterov", OfSgd, true},
    {"optimizer.no_weight_decay", NoWeightDecay},
    {"lr_schedule.decay_steps", DecaySteps, true},
    {"lr_schedule.decay_ratio", DecayRatio, true},
    {"lr_schedule.min_lr_factor", MinLrFactor},
    {"parallelism.sequence_parallel", OfTensor},
    {"parallelism.tensor_parallel_parts", OfTensor},
    {"parallelism.expert_tensor_parallel_degree", OfTensor},
    {"parallelism.context_parallel_method", ContextMethod, true},
    {"parallelism.expert_dispatch", ExpertDispatch, true},
    {"parallelism.bucket.elements", BucketElements},
    {"parallelism.bucket.alignment", OfBuckets},
    {"parallelism.bucket.padding", BucketPadding},
    {"activation_recomputation.num_layers", NumLayers},
    {"checkpoint.interval", CheckpointInterval},
    {"checkpoint.keep_latest_k", OfCheckpoints, true},
    {"checkpoint.keep_every_n_steps", KeepEveryNSteps},
    {"checkpoint.async_mode", OfCheckpoints, true},
    {"checkpoint.interval_seconds", IntervalSeconds, true},
    {"checkpoint.final_save_seconds", OfCheckpoints, true},
    {"fault_tolerance.allow_layout_change", AllowLayoutChange},
    {"xla.option_groups", OfXla},
    {"xla.options", OfXla},
};

}  // namespace

std::span<const ConditionalKey> ConditionalKeys() { return kKeys; }

std::string WhyWithoutEffect(const v1::JobSpec& spec, std::string_view path) {
  for (const ConditionalKey& key : kKeys) {
    if (key.path == path) return key.why_without_effect(spec);
  }
  return "";
}

BucketEffects BucketEffectsOf(const v1::JobSpec& spec) {
  return {.elements = BucketElements(spec).empty(),
          .alignment = OfBuckets(spec).empty(),
          .padding = BucketPadding(spec).empty()};
}

void DropDefaults(const v1::JobSpec& stated, v1::JobSpec* spec) {
  for (const ConditionalKey& key : kKeys) {
    if (!key.drops_default || HasKey(stated, key.path)) continue;
    if (!key.why_without_effect(*spec).empty()) ClearKey(key.path, spec);
  }
}

void ClearKeysWithoutEffect(v1::JobSpec* spec) {
  const v1::JobSpec stated = *spec;
  for (const ConditionalKey& key : kKeys) {
    if (HasKey(stated, key.path) && !key.why_without_effect(stated).empty())
      ClearKey(key.path, spec);
  }
}

}  // namespace troupe
