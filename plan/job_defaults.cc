#include "plan/job_defaults.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "plan/fault_cost.h"
#include "plan/key_effects.h"
#include "plan/schedules/schedules.h"
#include "plan/slowest_step.h"

namespace troupe {
namespace {

struct Preset {
  std::string_view name;
  const char* pattern;
  int64_t hidden_size;
  int64_t heads;
  int64_t key_value_heads;
  int64_t intermediate_size;
  int64_t vocab_size;
  bool tied;
  double rope_theta;
  double rope_factor;  // 0: no scaling
};

// llama-1b and llama-8b: Llama 3.2 1B and Llama 3.1 8B as published.
constexpr Preset kPresets[] = {
    {"tiny", "(AD)x4", 256, 8, 4, 704, 259, false, 1e4, 0},
    {"llama-124m", "(AD)x12", 768, 12, 12, 2048, 50304, true, 1e4, 0},
    {"llama-1b", "(AD)x16", 2048, 32, 8, 8192, 128256, true, 5e5, 32},
    {"llama-8b", "(AD)x32", 4096, 32, 8, 14336, 128256, false, 5e5, 8},
};

const Preset* FindPreset(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

// Sets `field` of the message to `value` unless it is present.
#define TROUPE_DEFAULT(message, field, value)                      \
  do {                                                             \
    if (!(message)->has_##field()) (message)->set_##field(value);  \
  } while (false)

// Defaults of the keys of block E.
void ApplyExpertDefaults(v1::ModelSpec* model) {
  if (model->pattern().find('E') == std::string::npos) return;
  TROUPE_DEFAULT(model, num_experts_per_tok,
                 std::clamp<int64_t>(model->num_experts(), 1, 2));
  TROUPE_DEFAULT(model, moe_intermediate_size, model->intermediate_size());
  TROUPE_DEFAULT(model, num_shared_experts, 0);
  TROUPE_DEFAULT(model, router_score, "softmax");
  TROUPE_DEFAULT(model, norm_topk_prob, true);
  TROUPE_DEFAULT(model, router_aux_loss_coef, 0.0);
  TROUPE_DEFAULT(model, router_z_loss_coef, 0.0);
  TROUPE_DEFAULT(model, router_bias_update_rate, 0.0);
}

void ApplyModelDefaults(v1::ModelSpec* model) {
  TROUPE_DEFAULT(model, export_dtype, "float32");
  // An imported model gets no defaults, because a default could contradict its directory: the
  // directory must state everything, or the job is refused.
  if (model->has_from()) return;
  const Preset* preset = FindPreset(model->preset());
  if (model->has_preset() && preset == nullptr) return;
  const Preset& base = preset != nullptr ? *preset : kPresets[0];
  TROUPE_DEFAULT(model, pattern, base.pattern);
  TROUPE_DEFAULT(model, hidden_size, base.hidden_size);
  // The key-value heads and sizes of a preset fit its own head count and hidden size. Without a
  // preset they follow from the stated values.
  TROUPE_DEFAULT(model, num_attention_heads, base.heads);
  TROUPE_DEFAULT(model, num_key_value_heads,
                 preset != nullptr ? base.key_value_heads : model->num_attention_heads());
  // Without head_dim the number of heads must divide the hidden size; otherwise head_dim must be
  // stated.
  const int64_t heads = model->num_attention_heads();
  if (!model->has_head_dim() && heads > 0 && model->hidden_size() % heads == 0) {
    model->set_head_dim(model->hidden_size() / model->num_attention_heads());
  }
  const int64_t hidden = model->hidden_size();
  const bool derive = preset == nullptr && hidden > 0 && hidden < (int64_t{1} << 40);
  TROUPE_DEFAULT(model, intermediate_size,
                 derive ? (hidden * 8 / 3 + 63) / 64 * 64 : base.intermediate_size);
  TROUPE_DEFAULT(model, vocab_size, base.vocab_size);
  TROUPE_DEFAULT(model, tie_word_embeddings, base.tied);
  TROUPE_DEFAULT(model, rope_theta, base.rope_theta);
  TROUPE_DEFAULT(model, norm_eps, 1e-5);
  ApplyExpertDefaults(model);
  if (base.rope_factor > 0 && !model->has_rope_scaling()) {
    model->mutable_rope_scaling()->set_rope_type("llama3");
  }
  if (model->has_rope_scaling()) {
    auto* scaling = model->mutable_rope_scaling();
    TROUPE_DEFAULT(scaling, factor, base.rope_factor > 0 ? base.rope_factor : 8.0);
    TROUPE_DEFAULT(scaling, low_freq_factor, 1.0);
    TROUPE_DEFAULT(scaling, high_freq_factor, 4.0);
    TROUPE_DEFAULT(scaling, original_max_position_embeddings, 8192);
  }
}

// A stated dtype of parameters is also the default of compute_dtype.
void ApplyMixedPrecisionDefaults(v1::TrainingSpec* training) {
  if (!training->has_mixed_precision()) return;
  auto* precision = training->mutable_mixed_precision();
  if (precision->param() == "float32" || precision->param() == "bfloat16") {
    TROUPE_DEFAULT(training, compute_dtype, precision->param());
  }
  TROUPE_DEFAULT(training, compute_dtype, "float32");
  TROUPE_DEFAULT(precision, param, training->compute_dtype());
  TROUPE_DEFAULT(precision, reduce, "float32");
  TROUPE_DEFAULT(precision, buffer, "float32");
}

void ApplyDataDefaults(v1::DataSpec* data) {
  TROUPE_DEFAULT(data, validation_fraction, 0.0);
  TROUPE_DEFAULT(data, document_mask, false);
  for (auto& entry : *data->mutable_blend()) TROUPE_DEFAULT(&entry, weight, 1.0);
}

void ApplyTrainingDefaults(v1::TrainingSpec* training) {
  TROUPE_DEFAULT(training, steps, 1000);
  TROUPE_DEFAULT(training, seed, 1234);
  TROUPE_DEFAULT(training, sequence_length, 256);
  TROUPE_DEFAULT(training, global_batch_size, 16);
  TROUPE_DEFAULT(training, micro_batch_size, 1);
  TROUPE_DEFAULT(training, max_norm, 1.0);
  ApplyMixedPrecisionDefaults(training);
  TROUPE_DEFAULT(training, compute_dtype, "float32");
  TROUPE_DEFAULT(training, z_loss_coef, 0.0);
  TROUPE_DEFAULT(training, validation_interval, 0);
  TROUPE_DEFAULT(training, on_nonfinite, "fail");
  TROUPE_DEFAULT(training, validation_samples, 64);
  TROUPE_DEFAULT(training, norms_interval, 0);
  TROUPE_DEFAULT(training->mutable_float8(), recipe, "none");
}

void ApplyOptimizerDefaults(v1::OptimizerSpec* optimizer) {
  TROUPE_DEFAULT(optimizer, name, "adamw");
  TROUPE_DEFAULT(optimizer, lr, 3e-4);
  TROUPE_DEFAULT(optimizer, beta1, 0.9);
  TROUPE_DEFAULT(optimizer, beta2, 0.95);
  TROUPE_DEFAULT(optimizer, eps, 1e-8);
  TROUPE_DEFAULT(optimizer, weight_decay, 0.1);
}

// `steps`: training steps, the default end of a decay.
void ApplyScheduleDefaults(int64_t steps, v1::LrScheduleSpec* schedule) {
  TROUPE_DEFAULT(schedule, warmup_steps, 0);
  TROUPE_DEFAULT(schedule, decay_type, "constant");
  TROUPE_DEFAULT(schedule, decay_steps, steps);
  TROUPE_DEFAULT(schedule, decay_ratio, 0.1);
  TROUPE_DEFAULT(schedule, min_lr_factor, 0.0);
}

void ApplyParallelismDefaults(v1::ParallelismSpec* parallelism) {
  TROUPE_DEFAULT(parallelism, data_parallel_replicate_degree, 1);
  TROUPE_DEFAULT(parallelism, data_parallel_shard_degree, 1);
  if (parallelism->data_parallel_shard_degree() > 1) {
    TROUPE_DEFAULT(parallelism, zero_stage, 3);
    if (parallelism->zero_stage() == 3) TROUPE_DEFAULT(parallelism, reshard_after_forward, "true");
  }
  TROUPE_DEFAULT(parallelism, shard_whole_matrices, false);
  TROUPE_DEFAULT(parallelism, tensor_parallel_degree, 1);
  TROUPE_DEFAULT(parallelism, sequence_parallel, false);
  TROUPE_DEFAULT(parallelism, pipeline_parallel_degree, 1);
  TROUPE_DEFAULT(parallelism, pipeline_parallel_schedule, "1F1B");
  // auto has no default, because it also chooses this number; neither has an unknown name, which is
  // refused.
  if (const auto named = FindSchedule(parallelism->pipeline_parallel_schedule())) {
    TROUPE_DEFAULT(parallelism, pipeline_parallel_chunks, named->default_chunks_per_stage);
  }
  TROUPE_DEFAULT(parallelism, context_parallel_degree, 1);
  TROUPE_DEFAULT(parallelism, context_parallel_method, "ring");
  TROUPE_DEFAULT(parallelism, expert_parallel_degree, 1);
  TROUPE_DEFAULT(parallelism, expert_dispatch, "all_to_all");
}

void ApplyCheckpointDefaults(v1::CheckpointSpec* checkpoint) {
  TROUPE_DEFAULT(checkpoint, interval, 0);
  TROUPE_DEFAULT(checkpoint, interval_seconds, checkpoint->interval() > 0 ? 0 : 1800);
  TROUPE_DEFAULT(checkpoint, final_save_seconds, kFinalSaveSeconds);
  TROUPE_DEFAULT(checkpoint, keep_latest_k, 3);
  TROUPE_DEFAULT(checkpoint, keep_every_n_steps, 0);
  TROUPE_DEFAULT(checkpoint, async_mode, "async");
}

void ApplyFaultToleranceDefaults(v1::FaultToleranceSpec* faults) {
  TROUPE_DEFAULT(faults, max_restarts, 5);
  TROUPE_DEFAULT(faults, hang_seconds, kDefaultHangSeconds);
  TROUPE_DEFAULT(faults, allow_layout_change, false);
}

}  // namespace

const char* KnownPresets() { return "tiny, llama-124m, llama-1b, llama-8b"; }

bool IsKnownPreset(std::string_view name) { return FindPreset(name) != nullptr; }

void ApplyDefaults(v1::JobSpec* spec) {
  const v1::JobSpec stated = *spec;
  ApplyModelDefaults(spec->mutable_model());
  ApplyDataDefaults(spec->mutable_data());
  ApplyTrainingDefaults(spec->mutable_training());
  ApplyOptimizerDefaults(spec->mutable_optimizer());
  ApplyScheduleDefaults(spec->training().steps(), spec->mutable_lr_schedule());
  ApplyParallelismDefaults(spec->mutable_parallelism());
  TROUPE_DEFAULT(spec->mutable_activation_recomputation(), mode, "none");
  ApplyCheckpointDefaults(spec->mutable_checkpoint());
  ApplyFaultToleranceDefaults(spec->mutable_fault_tolerance());
  TROUPE_DEFAULT(spec, devices, "cpu");
  TROUPE_DEFAULT(spec, priority, 0);
  DropDefaults(stated, spec);
}

#undef TROUPE_DEFAULT

}  // namespace troupe
