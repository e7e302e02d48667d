#include "plan/validate.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/config.h"
#include "model/program/op.h"
#include "plan/job_defaults.h"
#include "plan/reshard.h"
#include "plan/validate_axes.h"
#include "plan/validate_blend.h"
#include "plan/validate_pipeline.h"
#include "plan/validate_weight_decay.h"
#include "plan/violation.h"

namespace troupe {
namespace {

// Upper bounds keep every product of sizes within 64 bits.
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxSteps = int64_t{1} << 40;
constexpr int64_t kMaxSeconds = int64_t{100} * 365 * 86400;  // in nanoseconds, within 64 bits
constexpr int64_t kMaxRanks = int64_t{1} << 16;
constexpr size_t kMaxNameLength = 64;

class Validator {
 public:
  Validator(const v1::JobSpec& spec, JobPurpose purpose) : spec_(spec), purpose_(purpose) {}

  Status Run() {
    Name();
    Model();
    Data();
    Training();
    OptimizerAndSchedule();
    Degrees();
    Sharding();
    ValidateAxes(spec_, &violations_);
    ValidatePipeline(spec_, &violations_);
    Unfinished();
    Checkpoint();
    Devices();
    if (violations_.empty()) ValidateWeightDecay(spec_, &violations_);
    return violations_.ToStatus();
  }

 private:
  // Each of the following returns whether the value is valid.
  bool Within(const char* field, int64_t value, int64_t least, int64_t most) {
    if (value < least) {
      violations_.Add(field, "is {}, not at least {}", value, least);
    } else if (value > most) {
      violations_.Add(field, "is {}, above the limit of {}", value, most);
    }
    return value >= least && value <= most;
  }
  bool Positive(const char* field, double value) {
    const bool good = std::isfinite(value) && value > 0;
    if (!good) violations_.Add(field, "is {}, not a finite number above 0", value);
    return good;
  }
  bool NotNegative(const char* field, double value) {
    const bool good = std::isfinite(value) && value >= 0;
    if (!good) violations_.Add(field, "is {}, not a finite number of at least 0", value);
    return good;
  }
  bool Between(const char* field, double value, double least, double below) {
    const bool good = value >= least && value < below;
    if (!good) violations_.Add(field, "is {}, not in [{}, {})", value, least, below);
    return good;
  }
  // `built`: the words that this build supports; `known`: the other words of the schema.
  bool Word(const char* field, std::string_view value, std::initializer_list<std::string_view> built,
            std::initializer_list<std::string_view> known = {}) {
    for (std::string_view word : built) {
      if (word == value) return true;
    }
    for (std::string_view word : known) {
      if (word == value) {
        violations_.Add(field, "is {}, which this build does not have", value);
        return false;
      }
    }
    std::string words;
    for (const auto& list : {built, known}) {
      for (std::string_view word : list) words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
    }
    violations_.Add(field, "is \"{}\", not one of {}", value, words);
    return false;
  }
  void Name() {
    const std::string& name = spec_.name();
    if (!spec_.has_name() || name.empty()) {
      if (purpose_ == JobPurpose::kTrain) violations_.Add("name", "is required");
      return;
    }
    const auto alphanumeric = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    };
    bool good = name.size() <= kMaxNameLength && alphanumeric(name.front()) &&
                alphanumeric(name.back());
    for (char c : name) good = good && (alphanumeric(c) || c == '-');
    if (!good) {
      violations_.Add("name",
                      "is \"{}\", which does not match [a-z0-9]([a-z0-9-]{{0,62}}[a-z0-9])?",
                      name.substr(0, 100));
    }
  }

  void Model() {
    const auto& model = spec_.model();
    if (model.has_preset() && !IsKnownPreset(model.preset())) {
      violations_.Add("model.preset", "is \"{}\", not one of {}", model.preset(), KnownPresets());
      return;
    }
    if (model.has_from() && !From()) return;
    const auto blocks = model::ExpandPattern(model.pattern());
    if (!blocks.ok()) {
      violations_.Add("model.pattern", "is \"{}\", which {}", model.pattern().substr(0, 200),
                      Message(blocks.status()));
    } else {
      for (char letter : std::string_view("MR")) {
        if (blocks->find(letter) != std::string::npos) {
          violations_.Add(
              "model.pattern", "is \"{}\" with block {}; this build has blocks A, D and E",
              model.pattern(), letter);
        }
      }
    }
    Within("model.hidden_size", model.hidden_size(), 1, kMaxSize);
    Within("model.intermediate_size", model.intermediate_size(), 1, kMaxSize);
    Within("model.vocab_size", model.vocab_size(), 1, kMaxSize);
    const int64_t heads = model.num_attention_heads();
    const int64_t key_value_heads = model.num_key_value_heads();
    const bool good_heads = Within("model.num_attention_heads", heads, 1, kMaxSize);
    if (Within("model.num_key_value_heads", key_value_heads, 1, kMaxSize) && good_heads) {
      violations_.AddUnlessDivides("model.num_key_value_heads", key_value_heads, "model.num_attention_heads", heads);
    }
    if (good_heads) HeadDim(heads);
    Positive("model.rope_theta", model.rope_theta());
    Positive("model.norm_eps", model.norm_eps());
    if (model.has_rope_scaling()) RopeScaling();
    if (model.has_max_position_embeddings()) {
      Within("model.max_position_embeddings", model.max_position_embeddings(), 1, kMaxSteps);
    }
    if (model.has_export_config()) {
      const auto keys = nlohmann::json::parse(model.export_config(), nullptr, false);
      if (!keys.is_object()) {
        violations_.Add("model.export_config", "is {}, not a JSON object",
                        model.export_config().substr(0, 80));
      }
    }
    Word("model.export_dtype", model.export_dtype(), {"float32", "bfloat16", "float16"});
    Experts();
  }

  // Whether the configuration of model.from has been copied into the other keys.
  bool From() {
    const auto& model = spec_.model();
    Absolute("model.from", model.from());
    if (model.has_preset()) {
      violations_.Add("model.preset", "is {} beside model.from: state one of them", model.preset());
    }
    const auto* descriptor = v1::ModelSpec::descriptor();
    for (const char* key :
         {"pattern", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
          "intermediate_size", "vocab_size", "tie_word_embeddings", "rope_theta", "norm_eps"}) {
      if (model.GetReflection()->HasField(model, descriptor->FindFieldByName(key))) continue;
      violations_.Add("model.from",
                      "is {} and model.{} is absent: whoever submits a job writes the "
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
      violations_.Add("model.num_attention_heads",
                      "is {}, which does not divide model.hidden_size = {} (or state model.head_dim)",
                      heads, model.hidden_size());
    } else if (Within("model.head_dim", head_dim, 2, kMaxSize) && head_dim % 2 != 0) {
      violations_.Add("model.head_dim", "is {}, not even: rotary embedding turns pairs", head_dim);
    } else if (head_dim * heads > kMaxSize) {
      violations_.Add("model.head_dim", "is {}, and times model.num_attention_heads = {} above {}",
                      head_dim, heads, kMaxSize);
    }
  }

  void RopeScaling() {
    const auto& scaling = spec_.model().rope_scaling();
    Word("model.rope_scaling.rope_type", scaling.rope_type(), {"llama3"});
    Positive("model.rope_scaling.factor", scaling.factor());
    Positive("model.rope_scaling.low_freq_factor", scaling.low_freq_factor());
    Positive("model.rope_scaling.high_freq_factor", scaling.high_freq_factor());
    if (scaling.high_freq_factor() <= scaling.low_freq_factor()) {
      violations_.Add("model.rope_scaling.high_freq_factor",
                      "is {}, not above model.rope_scaling.low_freq_factor = {}",
                      scaling.high_freq_factor(), scaling.low_freq_factor());
    }
    Within("model.rope_scaling.original_max_position_embeddings",
           scaling.original_max_position_embeddings(), 1, kMaxSteps);
  }

  bool HasExperts() const {
    return spec_.model().pattern().find('E') != std::string::npos;
  }

  void Experts() {
    if (!HasExperts()) {
      ExpertKeysWithoutBlock();
      return;
    }
    const auto& model = spec_.model();
    const int64_t experts = model.num_experts(), top_k = model.num_experts_per_tok();
    if (!model.has_num_experts()) {
      violations_.Add("model.num_experts", "is required beside block E of model.pattern = \"{}\"",
                      model.pattern().substr(0, 200));
    } else if (Within("model.num_experts", experts, 1, model::kMaxExperts) &&
               Within("model.num_experts_per_tok", top_k, 1, kMaxSize) && top_k > experts) {
      violations_.Add("model.num_experts_per_tok", "is {}, above model.num_experts = {}", top_k,
                      experts);
    }
    Within("model.moe_intermediate_size", model.moe_intermediate_size(), 1, kMaxSize);
    if (Within("model.num_shared_experts", model.num_shared_experts(), 0, model::kMaxExperts) &&
        model.num_shared_experts() * model.moe_intermediate_size() > kMaxSize) {
      violations_.Add("model.num_shared_experts",
                      "is {}, and times model.moe_intermediate_size = {} above {}",
                      model.num_shared_experts(), model.moe_intermediate_size(), kMaxSize);
    }
    if (model.has_capacity_factor()) Positive("model.capacity_factor", model.capacity_factor());
    Word("model.router_score", model.router_score(), {"softmax", "sigmoid"});
    NotNegative("model.router_aux_loss_coef", model.router_aux_loss_coef());
    NotNegative("model.router_z_loss_coef", model.router_z_loss_coef());
    NotNegative("model.router_bias_update_rate", model.router_bias_update_rate());
  }

  // Keys of block E have no meaning without it: each is refused by name.
  void ExpertKeysWithoutBlock() {
    const auto& model = spec_.model();
    const auto* descriptor = v1::ModelSpec::descriptor();
    for (const char* name :
         {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "num_shared_experts",
          "capacity_factor", "router_score", "norm_topk_prob", "router_aux_loss_coef",
          "router_z_loss_coef", "router_bias_update_rate"}) {
      const auto* field = descriptor->FindFieldByName(name);
      if (model.GetReflection()->HasField(model, field)) {
        violations_.Add("model." + field->name(),
                                     "is set where model.pattern = \"{}\" has no block E",
                        model.pattern().substr(0, 200));
      }
    }
  }

  void Data() {
    const auto& data = spec_.data();
    if (data.blend_size() > 0) ValidateBlend(data, &violations_);
    if (!(data.validation_fraction() >= 0 && data.validation_fraction() < 1)) {
      violations_.Add("data.validation_fraction", "is {}, not in [0, 1)",
                      data.validation_fraction());
    }
    if (!data.validation().empty() && data.validation_fraction() > 0) {
      violations_.Add("data.validation_fraction", "is {} beside data.validation: state one of them",
                      data.validation_fraction());
    }
    if (purpose_ != JobPurpose::kTrain) return;
    if (data.train().empty() && data.blend_size() == 0) {
      violations_.Add("data.train", "is required where data.blend is not given");
    }
    Absolute("data.train", data.train());
    Absolute("data.validation", data.validation());
    for (int i = 0; i < data.blend_size(); ++i) {
      Absolute(fmt::format("data.blend[{}].path", i), data.blend(i).path());
    }
  }

  void Absolute(const std::string& field, const std::string& path) {
    if (purpose_ == JobPurpose::kTrain && !path.empty() && path[0] != '/') {
      violations_.Add(field, "is {}, not an absolute path", path);
    }
    if (path.find('\0') != std::string::npos) violations_.Add(field, "has a zero byte");
  }

  void Training() {
    const auto& training = spec_.training();
    Within("training.steps", training.steps(), 1, kMaxSteps);
    Within("training.sequence_length", training.sequence_length(), 1, kMaxSize);
    const bool good_global =
        Within("training.global_batch_size", training.global_batch_size(), 1, kMaxSize);
    if (Within("training.micro_batch_size", training.micro_batch_size(), 1, kMaxSize) &&
        good_global) {
      BatchSplit();
      if (training.micro_batch_size() * training.sequence_length() > (int64_t{1} << 30)) {
        violations_.Add("training.micro_batch_size",
                        "is {}, and times training.sequence_length = {} above 2^30 tokens",
                        training.micro_batch_size(), training.sequence_length());
      }
    }
    NotNegative("training.max_norm", training.max_norm());
    Word("training.compute_dtype", training.compute_dtype(), {"float32", "bfloat16"});
    NotNegative("training.z_loss_coef", training.z_loss_coef());
    Dropout();
    if (training.has_mixed_precision()) MixedPrecision(training);
    Word("training.float8.recipe", training.float8().recipe(), {"none", "delayed", "current", "blockwise"});
    if (training.float8().recipe() != "none" && training.compute_dtype() != "bfloat16") {
      violations_.Add("training.float8.recipe",
                      "is \"{}\", and training.compute_dtype is \"{}\", not bfloat16: what float8 products take and "
                      "make is bfloat16",
                      training.float8().recipe(), training.compute_dtype());
    }
    Word("training.on_nonfinite", training.on_nonfinite(), {"fail", "skip_step"});
    if (training.has_validation_samples()) {
      Within("training.validation_samples", training.validation_samples(), 1, kMaxSize);
    }
    Within("training.norms_interval", training.norms_interval(), 0, kMaxSteps);
    if (Within("training.validation_interval", training.validation_interval(), 0, kMaxSteps) &&
        training.validation_interval() > 0 && spec_.data().validation().empty() &&
        !(spec_.data().validation_fraction() > 0)) {
      violations_.Add("training.validation_interval",
                      "is {} where neither data.validation nor data.validation_fraction is set",
                      training.validation_interval());
    }
  }

  void Dropout() {
    const double probability = spec_.model().hidden_dropout();
    if (!(probability >= 0 && probability < 1)) {
      violations_.Add("model.hidden_dropout", "is {}, not in [0, 1)", probability);
    } else if (probability > 0 && spec_.training().steps() > std::numeric_limits<int32_t>::max()) {
      violations_.Add("training.steps", "is {}, above 2^31 - 1 beside model.hidden_dropout = {}",
                      spec_.training().steps(), probability);
    }
  }

  void MixedPrecision(const v1::TrainingSpec& training) {
    const v1::MixedPrecision& precision = training.mixed_precision();
    Word("training.mixed_precision.param", precision.param(), {"float32", "bfloat16"});
    Word("training.mixed_precision.reduce", precision.reduce(), {"float32", "bfloat16"});
    Word("training.mixed_precision.buffer", precision.buffer(), {"float32", "bfloat16"});
  }

  void BatchSplit() {
    const auto& parallelism = spec_.parallelism();
    const int64_t replicas = parallelism.data_parallel_replicate_degree();
    const int64_t shards = parallelism.data_parallel_shard_degree();
    const int64_t experts = parallelism.expert_parallel_degree();
    for (const int64_t degree : {replicas, shards, experts}) {
      if (degree < 1 || degree > kMaxRanks) return;
    }
    const int64_t unit = replicas * shards * experts * spec_.training().micro_batch_size();
    if (spec_.training().global_batch_size() % unit != 0) {
      violations_.Add("training.global_batch_size",
                      "is {}, not a multiple of data_parallel_replicate_degree = {} times {}{}"
                      "micro_batch_size = {}",
                      spec_.training().global_batch_size(), replicas,
                      shards == 1 ? "" : fmt::format("data_parallel_shard_degree = {} times ", shards),
                      experts == 1 ? "" : fmt::format("expert_parallel_degree = {} times ", experts),
                      spec_.training().micro_batch_size());
    }
  }

  void OptimizerAndSchedule() {
    const auto& optimizer = spec_.optimizer();
    Word("optimizer.name", optimizer.name(), {"adamw"});
    Positive("optimizer.lr", optimizer.lr());
    Between("optimizer.beta1", optimizer.beta1(), 0, 1);
    Between("optimizer.beta2", optimizer.beta2(), 0, 1);
    Positive("optimizer.eps", optimizer.eps());
    NotNegative("optimizer.weight_decay", optimizer.weight_decay());

    const auto& schedule = spec_.lr_schedule();
    Within("lr_schedule.warmup_steps", schedule.warmup_steps(), 0, kMaxSteps);
    Word("lr_schedule.decay_type", schedule.decay_type(),
         {"constant", "linear", "cosine", "wsd", "inverse_sqrt"});
    // The default is training.steps, which is refused under its own name.
    if (schedule.has_decay_steps() && schedule.decay_steps() != spec_.training().steps()) {
      Within("lr_schedule.decay_steps", schedule.decay_steps(), 1, kMaxSteps);
    }
    if (schedule.has_decay_ratio() && !(schedule.decay_ratio() > 0 && schedule.decay_ratio() <= 1)) {
      violations_.Add("lr_schedule.decay_ratio", "is {}, not in (0, 1]", schedule.decay_ratio());
    }
    if (!(schedule.min_lr_factor() >= 0 && schedule.min_lr_factor() <= 1)) {
      violations_.Add("lr_schedule.min_lr_factor", "is {}, not in [0, 1]",
                      schedule.min_lr_factor());
    }
  }

  void Degrees() {
    const auto& parallelism = spec_.parallelism();
    Within("parallelism.data_parallel_replicate_degree",
           parallelism.data_parallel_replicate_degree(), 1, kMaxRanks);
    Within("parallelism.tensor_parallel_degree", parallelism.tensor_parallel_degree(), 1, kMaxRanks);
    Within("parallelism.pipeline_parallel_degree", parallelism.pipeline_parallel_degree(), 1,
           kMaxRanks);
    Within("parallelism.data_parallel_shard_degree", parallelism.data_parallel_shard_degree(), 1,
           kMaxRanks);
    Within("parallelism.context_parallel_degree", parallelism.context_parallel_degree(), 1,
           kMaxRanks);
    Within("parallelism.expert_parallel_degree", parallelism.expert_parallel_degree(), 1,
           kMaxRanks);
    int64_t ranks = 1;
    for (int64_t degree :
         {parallelism.data_parallel_replicate_degree(), parallelism.data_parallel_shard_degree(),
          parallelism.tensor_parallel_degree(), parallelism.pipeline_parallel_degree(),
          parallelism.context_parallel_degree(), parallelism.expert_parallel_degree()}) {
      if (degree < 1 || degree > kMaxRanks) return;
      ranks *= degree;
      if (ranks > kMaxRanks) {
        violations_.Add("parallelism", "has degrees whose product is above {} ranks", kMaxRanks);
        return;
      }
    }
  }

  void Sharding() {
    const auto& parallelism = spec_.parallelism();
    ValidateReshard(parallelism, &violations_);
    const auto& bucket = parallelism.bucket();
    if (bucket.has_elements())
      Within("parallelism.bucket.elements", bucket.elements(), 1, int64_t{1} << 40);
    // Memory regions begin at pages of 1,024 elements.
    if (bucket.has_alignment()) Within("parallelism.bucket.alignment", bucket.alignment(), 1, 1024);
    if (bucket.has_padding() &&
        Within("parallelism.bucket.padding", bucket.padding(), 1, int64_t{1} << 24) &&
        bucket.has_alignment()) {
      violations_.AddUnlessDivides("parallelism.bucket.alignment", bucket.alignment(),
                                   "parallelism.bucket.padding", bucket.padding());
    }
    if (!parallelism.has_zero_stage()) return;
    const bool is_stage = Within("parallelism.zero_stage", parallelism.zero_stage(), 1, 3);
    if (is_stage && parallelism.data_parallel_shard_degree() == 1 &&
        parallelism.expert_parallel_degree() == 1) {
      violations_.Add(
          "parallelism.zero_stage",
          "is {}, and parallelism.data_parallel_shard_degree and expert_parallel_degree "
          "are 1: there are no ranks to shard over",
          parallelism.zero_stage());
    }
  }

  // Reports features of the schema that this build lacks.
  void Unfinished() {
    const auto& parallelism = spec_.parallelism();
    if (parallelism.has_context_parallel_method()) {
      Word("parallelism.context_parallel_method", parallelism.context_parallel_method(),
           {"ring", "all_to_all"});
    }
    if (parallelism.has_expert_dispatch()) {
      Word("parallelism.expert_dispatch", parallelism.expert_dispatch(),
           {"all_to_all", "all_gather"});
    }
    const auto& recomputation = spec_.activation_recomputation();
    Word("activation_recomputation.mode", recomputation.mode(), {"none", "selective", "full"});
    if (recomputation.has_num_layers()) {
      Within("activation_recomputation.num_layers", recomputation.num_layers(), 1, kMaxSize);
    }
  }

  void Checkpoint() {
    const auto& checkpoint = spec_.checkpoint();
    Within("checkpoint.keep_latest_k", checkpoint.keep_latest_k(), 0, kMaxSteps);
    Within("checkpoint.keep_every_n_steps", checkpoint.keep_every_n_steps(), 0, kMaxSteps);
    if (Within("checkpoint.interval", checkpoint.interval(), 0, kMaxSteps) &&
        checkpoint.interval() > 0 && checkpoint.folder().empty()) {
      violations_.Add("checkpoint.interval", "is {} where checkpoint.folder is not set",
                      checkpoint.interval());
    }
    Within("checkpoint.interval_seconds", checkpoint.interval_seconds(), 0, kMaxSeconds);
    Between("checkpoint.final_save_seconds", checkpoint.final_save_seconds(), 0, kMaxSeconds);
    if (checkpoint.has_async_mode()) {
      Word("checkpoint.async_mode", checkpoint.async_mode(), {"async", "disabled"});
    }
    Absolute("checkpoint.folder", checkpoint.folder());
    Absolute("checkpoint.initial_load", checkpoint.initial_load());
    const auto& faults = spec_.fault_tolerance();
    Within("fault_tolerance.max_restarts", faults.max_restarts(), 0, kMaxSteps);
    Positive("fault_tolerance.hang_seconds", faults.hang_seconds()) &&
        Between("fault_tolerance.hang_seconds", faults.hang_seconds(), 0, kMaxSeconds);
  }

  void Devices() { Word("devices", spec_.devices(), {"cpu", "cuda"}, {"xla"}); }

  const v1::JobSpec& spec_;
  const JobPurpose purpose_;
  Violations violations_;
};

}  // namespace

Status ValidateJobSpec(const v1::JobSpec& spec, JobPurpose purpose) {
  return Validator(spec, purpose).Run();
}

}  // namespace troupe
