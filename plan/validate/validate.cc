#include "plan/validate/validate.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/blocks/pattern.h"
#include "model/program/op.h"
#include "plan/device/device_traits.h"
#include "plan/job/job_choices.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_name.h"
#include "plan/job/job_rules.h"
#include "plan/job/key_blocks.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"
#include "plan/job/violation.h"
#include "plan/layout/mesh.h"
#include "plan/validate/reshard.h"
#include "plan/validate/validate_axes.h"
#include "plan/validate/validate_blend.h"
#include "plan/validate/validate_globs.h"
#include "plan/validate/validate_pipeline.h"
#include "plan/validate/validate_xla.h"

namespace troupe {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;  // the limit of a product of sizes

class Validator {
 public:
  Validator(const v1::JobSpec& spec, JobPurpose purpose)
      : spec_(spec), purpose_(purpose), choices_(ChoicesOf(spec)) {}

  Status Run() {
    ValidateKeys(spec_, purpose_, &violations_);
    Name();
    Model();
    Data();
    Training();
    Optimizer();
    Degrees();
    Sharding();
    ValidateAxes(spec_, choices_, &violations_);
    ValidatePipeline(spec_, &violations_);
    Checkpoint();
    ValidateXla(spec_.xla(), &violations_);
    if (violations_.empty()) ValidateGlobs(spec_, &violations_);
    return violations_.ToStatus();
  }

 private:
  void Optimizer() {
    if (IsRefused("optimizer.name")) return;
    // Keys of another optimizer have no default: one that is present was stated.
    for (const ConditionalKey& key : ConditionalKeys()) {
      if (!key.path.starts_with("optimizer.") || !key.drops_default) continue;
      const std::string path(key.path);
      const std::string why = HasKey(spec_, path) ? key.why_without_effect(spec_) : "";
      if (!why.empty()) violations_.Add(path, "is {}, but {}", KeyText(spec_, path), why);
    }
    const v1::OptimizerSpec& optimizer = spec_.optimizer();
    if (!optimizer.nesterov() || optimizer.momentum() > 0 || IsRefused("optimizer.nesterov") ||
        IsRefused("optimizer.momentum"))
      return;
    violations_.Add("optimizer.nesterov", "is true, but optimizer.momentum is {}, not above 0",
                    optimizer.momentum());
  }

  bool IsRefused(std::string_view field) const { return violations_.Has(field); }

  void Name() {
    const std::string& name = spec_.name();
    if (!spec_.has_name() || name.empty()) {
      if (purpose_ == JobPurpose::kTrain) violations_.Add("name", "is required");
      return;
    }
    if (!IsJobId(name)) {
      violations_.Add("name",
                      "is \"{}\", which does not match {}, alone or twice with a dot between",
                      name.substr(0, 100), kNamePattern);
    }
  }

  void Model() {
    const auto& model = spec_.model();
    if (model.has_preset() && !IsKnownPreset(model.preset())) {
      violations_.AddUnknownWord("model.preset", model.preset(), KnownPresets());
      return;
    }
    if (model.has_from() && !From()) return;
    const auto blocks = model::ExpandPattern(model.pattern());
    if (!blocks.ok()) {
      violations_.Add("model.pattern", "is \"{}\", which {}", model.pattern().substr(0, 200),
                      Message(blocks.status()));
    } else {
      for (const model::BlockKind* kind : model::BlockKinds()) {
        if (kind->build != nullptr || blocks->find(kind->letter) == std::string::npos) continue;
        violations_.Add("model.pattern", "is \"{}\" with block {}; the blocks of this build are {}",
                        model.pattern(), kind->letter, model::BuiltLetters());
      }
    }
    const int64_t heads = model.num_attention_heads();
    if (!IsRefused("model.num_attention_heads")) {
      if (!IsRefused("model.num_key_value_heads")) {
        violations_.AddUnlessDivides("model.num_key_value_heads", model.num_key_value_heads(),
                                     "model.num_attention_heads", heads);
      }
      HeadDim(heads);
    }
    if (model.has_rope_scaling()) RopeScaling();
    if (model.has_export_config()) {
      const auto keys = nlohmann::json::parse(model.export_config(), nullptr, false);
      if (!keys.is_object()) {
        violations_.Add("model.export_config", "is {}, not a JSON object",
                        model.export_config().substr(0, 80));
      }
    }
    Experts();
  }

  // Whether the configuration of model.from has been copied into the other keys.
  bool From() {
    const auto& model = spec_.model();
    if (model.has_preset()) {
      violations_.Add("model.preset", "is {}, but model.from is set too: state one of them",
                      model.preset());
    }
    const auto* descriptor = v1::ModelSpec::descriptor();
    for (const char* key :
         {"pattern", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
          "intermediate_size", "vocab_size", "tie_word_embeddings", "rope_theta", "norm_eps"}) {
      if (model.GetReflection()->HasField(model, descriptor->FindFieldByName(key))) continue;
      violations_.Add("model.from",
                      "is {}, but model.{} is absent: the client that submits a job copies the "
                      "configuration into it, as `troupe submit` does",
                      model.from(), key);
      return false;
    }
    return true;
  }

  void HeadDim(int64_t heads) {
    const auto& model = spec_.model();
    const int64_t head_dim = model.head_dim();
    if (!model.has_head_dim()) {
      violations_.AddNotDivisor(
          "model.num_attention_heads", heads,
          fmt::format("model.hidden_size = {}; state model.head_dim, or a divisor",
                      model.hidden_size()));
    } else if (IsRefused("model.head_dim")) {
      return;
    } else if (head_dim % 2 != 0) {
      violations_.AddNotMultiple("model.head_dim", head_dim, "2: RoPE rotates pairs");
    } else if (head_dim * heads > kMaxSize) {
      violations_.AddProductTooLarge("model.head_dim", head_dim,
                                     fmt::format("model.num_attention_heads = {}", heads),
                                     fmt::to_string(kMaxSize));
    }
  }

  void RopeScaling() {
    const auto& scaling = spec_.model().rope_scaling();
    if (scaling.high_freq_factor() <= scaling.low_freq_factor()) {
      violations_.AddNotAbove(
          "model.rope_scaling.high_freq_factor", scaling.high_freq_factor(),
          fmt::format("model.rope_scaling.low_freq_factor = {}", scaling.low_freq_factor()));
    }
  }

  void Experts() {
    const auto& model = spec_.model();
    if (!model::HasExperts(model.pattern())) return;
    const int64_t experts = model.num_experts(), top_k = model.num_experts_per_tok();
    if (!model.has_num_experts()) {
      violations_.Add("model.num_experts",
                      "is required, because model.pattern = \"{}\" has a block {}",
                      model.pattern().substr(0, 200), BlocksWith(&model::BlockKind::has_experts));
    } else if (!IsRefused("model.num_experts") && !IsRefused("model.num_experts_per_tok") &&
               top_k > experts) {
      violations_.AddTooLarge("model.num_experts_per_tok", top_k,
                              fmt::format("model.num_experts = {}", experts));
    }
    if (!IsRefused("model.num_shared_experts") && !IsRefused("model.moe_intermediate_size") &&
        !IsRefused("model.intermediate_size") &&
        model.num_shared_experts() * model.moe_intermediate_size() > kMaxSize) {
      violations_.AddProductTooLarge(
          "model.num_shared_experts", model.num_shared_experts(),
          fmt::format("model.moe_intermediate_size = {}", model.moe_intermediate_size()),
          fmt::to_string(kMaxSize));
    }
  }

  void Data() {
    const auto& data = spec_.data();
    if (data.blend_size() > 0) ValidateBlend(data, &violations_);
    if (!data.validation().empty() && data.validation_fraction() > 0) {
      violations_.Add("data.validation_fraction",
                      "is {}, but data.validation is set too: state one of them",
                      data.validation_fraction());
    }
    if (purpose_ != JobPurpose::kTrain) return;
    if (data.train().empty() && data.blend_size() == 0) {
      violations_.Add("data.train", "is required if data.blend is not given");
    }
  }

  void Training() {
    const auto& training = spec_.training();
    if (!IsRefused("training.micro_batch_size") && !IsRefused("training.global_batch_size")) {
      BatchSplit();
      if (!IsRefused("training.sequence_length") &&
          training.micro_batch_size() * training.sequence_length() > (int64_t{1} << 30)) {
        violations_.AddProductTooLarge(
            "training.micro_batch_size", training.micro_batch_size(),
            fmt::format("training.sequence_length = {}", training.sequence_length()),
            "2^30 tokens");
      }
    }
    Dropout();
    if (choices_.float8 != model::Float8Recipe::kNone &&
        choices_.compute_dtype != model::DType::kBFloat16) {
      violations_.Add("training.float8.recipe",
                      "is \"{}\", but training.compute_dtype is \"{}\", not bfloat16: inputs and "
                      "outputs of FP8 matmuls are bfloat16",
                      training.float8().recipe(), training.compute_dtype());
    }
    if (choices_.float8 != model::Float8Recipe::kNone && !IsRefused("devices") &&
        DeviceTraitsOf(spec_.devices()).WhyNot(model::OpKind::kQuantize) != nullptr) {
      violations_.Add("training.float8.recipe",
                      "is \"{}\", but devices is \"{}\", on which FP8 matmuls are not available",
                      training.float8().recipe(), spec_.devices());
    }
    if (training.validation_interval() > 0 && !HoldsOutSamples(spec_.data())) {
      violations_.Add("training.validation_interval",
                      "is {}, but neither data.validation nor data.validation_fraction is set",
                      training.validation_interval());
    }
  }

  void Dropout() {
    const double probability = spec_.model().hidden_dropout();
    if (!IsRefused("model.hidden_dropout") && probability > 0 &&
        spec_.training().steps() > std::numeric_limits<int32_t>::max()) {
      violations_.AddTooLarge(
          "training.steps", spec_.training().steps(),
          fmt::format("2^31 - 1, the limit with model.hidden_dropout = {}", probability));
    }
  }

  void BatchSplit() {
    const auto& parallelism = spec_.parallelism();
    const int64_t replicas = parallelism.data_parallel_replicate_degree();
    const int64_t shards = parallelism.data_parallel_shard_degree();
    const int64_t experts = parallelism.expert_parallel_degree();
    for (const int64_t degree : {replicas, shards, experts}) {
      if (degree < 1 || degree > kMaxRanks) return;
    }
    // In 128 bits, because the product may be above 2^64.
    const __int128 unit =
        static_cast<__int128>(replicas) * shards * experts * spec_.training().micro_batch_size();
    if (spec_.training().global_batch_size() % unit != 0) {
      violations_.AddNotMultiple(
          "training.global_batch_size", spec_.training().global_batch_size(),
          fmt::format(
              "data_parallel_replicate_degree = {} times {}{}micro_batch_size = {}", replicas,
              shards == 1 ? "" : fmt::format("data_parallel_shard_degree = {} times ", shards),
              experts == 1 ? "" : fmt::format("expert_parallel_degree = {} times ", experts),
              spec_.training().micro_batch_size()));
    }
  }

  void Degrees() {
    const auto& parallelism = spec_.parallelism();
    for (const int64_t degree :
         {parallelism.data_parallel_replicate_degree(), parallelism.data_parallel_shard_degree(),
          parallelism.tensor_parallel_degree(), parallelism.pipeline_parallel_degree(),
          parallelism.context_parallel_degree(), parallelism.expert_parallel_degree()}) {
      if (degree < 1 || degree > kMaxRanks) return;
    }
    if (!MakeMesh(parallelism).ok())
      violations_.Add("parallelism", "has degrees whose product is above {} ranks", kMaxRanks);
  }

  void Sharding() {
    const auto& parallelism = spec_.parallelism();
    ValidateReshard(parallelism, &violations_);
    const auto& bucket = parallelism.bucket();
    if (bucket.has_padding() && bucket.has_alignment() &&
        !IsRefused("parallelism.bucket.padding")) {
      violations_.AddUnlessDivides("parallelism.bucket.alignment", bucket.alignment(),
                                   "parallelism.bucket.padding", bucket.padding());
    }
    if (!parallelism.has_zero_stage()) return;
    if (!IsRefused("parallelism.zero_stage") && parallelism.data_parallel_shard_degree() == 1 &&
        parallelism.expert_parallel_degree() == 1) {
      violations_.Add("parallelism.zero_stage",
                      "is {}, but parallelism.data_parallel_shard_degree and "
                      "expert_parallel_degree are 1: there are no ranks to shard over",
                      parallelism.zero_stage());
    }
  }

  void Checkpoint() {
    const auto& checkpoint = spec_.checkpoint();
    if (!IsRefused("checkpoint.interval") && checkpoint.interval() > 0 &&
        !HasCheckpointFolder(spec_)) {
      violations_.Add("checkpoint.interval",
                      "is {}, but checkpoint.folder is \"\": there are no checkpoints",
                      checkpoint.interval());
    }
  }

  const v1::JobSpec& spec_;
  const JobPurpose purpose_;
  const JobChoices choices_;
  Violations violations_;
};

}  // namespace

Status ValidateJobSpec(const v1::JobSpec& spec, JobPurpose purpose) {
  return Validator(spec, purpose).Run();
}

}  // namespace troupe
