#include "plan/job/job_defaults.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "model/blocks/pattern.h"
#include "plan/job/fill_defaults.h"
#include "plan/job/key_blocks.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_schema.h"
#include "plan/job/reshard_mode.h"
#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;

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
#define TROUPE_DEFAULT(message, field, value)                     \
  do {                                                            \
    if (!(message)->has_##field()) (message)->set_##field(value); \
  } while (false)

// The values of the model's preset replace the defaults of the schema.
void ApplyPreset(const Preset& preset, v1::ModelSpec* model) {
  TROUPE_DEFAULT(model, pattern, preset.pattern);
  TROUPE_DEFAULT(model, hidden_size, preset.hidden_size);
  TROUPE_DEFAULT(model, num_attention_heads, preset.heads);
  TROUPE_DEFAULT(model, num_key_value_heads, preset.key_value_heads);
  TROUPE_DEFAULT(model, intermediate_size, preset.intermediate_size);
  TROUPE_DEFAULT(model, vocab_size, preset.vocab_size);
  TROUPE_DEFAULT(model, tie_word_embeddings, preset.tied);
  TROUPE_DEFAULT(model, rope_theta, preset.rope_theta);
  if (preset.rope_factor == 0) return;
  if (!model->has_rope_scaling())
    model->mutable_rope_scaling()->set_rope_type(EncodeWord(v1::ROPE_TYPE_LLAMA3));
  TROUPE_DEFAULT(model->mutable_rope_scaling(), factor, preset.rope_factor);
}

// Defaults that replace those of the schema where another key is stated.
void ApplyConditionalDefaults(v1::JobSpec* spec) {
  if (const Preset* const preset = FindPreset(spec->model().preset())) {
    if (!spec->model().has_from()) ApplyPreset(*preset, spec->mutable_model());
  }
  v1::TrainingSpec* const training = spec->mutable_training();
  const std::string& param = training->mixed_precision().param();
  if (FindWord<v1::ComputeDtype>(param)) TROUPE_DEFAULT(training, compute_dtype, param);
  v1::CheckpointSpec* const checkpoint = spec->mutable_checkpoint();
  if (checkpoint->interval() > 0) TROUPE_DEFAULT(checkpoint, interval_seconds, 0);
}

// Whether absent keys of the model get defaults. An imported model gets none, because a default
// could contradict its directory: the directory must state everything, or the job is refused.
bool HasModelDefaults(const v1::ModelSpec& model) {
  return !model.has_from() && (!model.has_preset() || IsKnownPreset(model.preset()));
}

// Whether the default of a field applies to the job. Reads the pattern each time, because the
// pattern has a default itself.
bool Applies(const v1::JobSpec& spec, const FieldDescriptor& field) {
  if (!HasBlockThatReads(KeyOptionsOf(field), spec.model().pattern())) return false;
  return field.containing_type() != v1::ModelSpec::descriptor() || HasModelDefaults(spec.model()) ||
         field.number() == v1::ModelSpec::kExportDtypeFieldNumber;
}

// Defaults that are computed from other keys, of the model.
void ComputeModelDefaults(v1::ModelSpec* model) {
  if (!HasModelDefaults(*model)) return;
  const int64_t heads = model->num_attention_heads();
  const int64_t hidden = model->hidden_size();
  // Without head_dim the number of heads must divide the hidden size; otherwise head_dim must be
  // stated.
  if (heads > 0 && hidden % heads == 0) TROUPE_DEFAULT(model, head_dim, hidden / heads);
  if (hidden > 0 && hidden < (int64_t{1} << 40)) {
    TROUPE_DEFAULT(model, intermediate_size, (hidden * 8 / 3 + 63) / 64 * 64);
  }
  if (model::HasExperts(model->pattern())) {
    TROUPE_DEFAULT(model, num_experts_per_tok, std::clamp<int64_t>(model->num_experts(), 1, 2));
  }
}

// The same, of the layout.
void ComputeParallelismDefaults(v1::ParallelismSpec* parallelism) {
  if (parallelism->data_parallel_shard_degree() > 1) {
    TROUPE_DEFAULT(parallelism, zero_stage, 3);
    if (parallelism->zero_stage() == 3) {
      TROUPE_DEFAULT(parallelism, reshard_after_forward, kReshardTrue.ToText());
    }
  }
  // auto has no default, because it also chooses this number; neither has an unknown name, which is
  // refused.
  if (const auto named = FindSchedule(parallelism->pipeline_parallel_schedule())) {
    TROUPE_DEFAULT(parallelism, pipeline_parallel_chunks, named->default_chunks_per_stage);
  }
}

}  // namespace

std::string KnownPresets() {
  std::string names;
  for (const Preset& preset : kPresets) {
    if (!names.empty()) names += ", ";
    names += preset.name;
  }
  return names;
}

bool IsKnownPreset(std::string_view name) { return FindPreset(name) != nullptr; }

void ApplyDefaults(v1::JobSpec* spec) {
  const v1::JobSpec stated = *spec;
  const auto applies = [spec](const FieldDescriptor& field) { return Applies(*spec, field); };
  ApplyConditionalDefaults(spec);
  FillDefaults(applies, spec);
  ComputeModelDefaults(spec->mutable_model());
  ComputeParallelismDefaults(spec->mutable_parallelism());
  CopyDefaults(applies, spec);
  DropDefaults(stated, spec);
}

#undef TROUPE_DEFAULT

}  // namespace troupe
