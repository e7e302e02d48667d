#include "interop/hf_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text_file.h"
#include "interop/llama_tensors.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kConfigBytesMax = int64_t{1} << 20;
constexpr int64_t kLayersMax = 2048;  // two blocks each: the most that a pattern may have
constexpr int64_t kSizeMax = int64_t{1} << 40;

// Keys that training does not need, but generation with an export does.
constexpr const char* kKeptKeys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};

std::string TextOf(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
}

// Reads keys of one JSON object; errors prefix the key with `prefix`. A null counts as absent.
class Keys {
 public:
  Keys(const Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {}

  const Json* FindEvenNull(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  const Json* Find(const char* key) const {
    const Json* found = FindEvenNull(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  std::string Name(const char* key) const { return prefix_ + key; }

  StatusOr<int64_t> Integer(const char* key, std::optional<int64_t> otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr) return InvalidArgument("{} is absent", Name(key));
    // The parser returns a number without a sign as unsigned; a value above 2^63 must not wrap.
    if (!value->is_number_unsigned() || value->get<uint64_t>() < 1 ||
        value->get<uint64_t>() > static_cast<uint64_t>(kSizeMax)) {
      return InvalidArgument("{} is {}, not a whole number from 1 to {}", Name(key), TextOf(*value),
                             kSizeMax);
    }
    return value->get<int64_t>();
  }
  StatusOr<double> Number(const char* key, std::optional<double> otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr) return InvalidArgument("{} is absent", Name(key));
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (!std::isfinite(number)) {
      return InvalidArgument("{} is {}, not a finite number", Name(key), TextOf(*value));
    }
    return number;
  }
  StatusOr<bool> Boolean(const char* key, bool otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) {
      return InvalidArgument("{} is {}, not true or false", Name(key), TextOf(*value));
    }
    return value->get<bool>();
  }
  StatusOr<std::string> Text(const char* key, const char* otherwise) const {
    const Json* value = Find(key);
    if (value == nullptr) return std::string(otherwise);
    if (!value->is_string()) {
      return InvalidArgument("{} is {}, not text", Name(key), TextOf(*value));
    }
    return value->get<std::string>();
  }

 private:
  const Json& object_;
  std::string prefix_;
};

// Refuses settings that other members of the family may enable.
Status CheckArithmetic(const Keys& config) {
  TROUPE_ASSIGN_OR_RETURN(const std::string type, config.Text("model_type", ""));
  if (type != "llama" && type != "mistral") {
    return InvalidArgument("model_type is \"{}\", not llama or mistral", type.substr(0, 64));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string activation, config.Text("hidden_act", "silu"));
  if (activation != "silu") {
    return InvalidArgument("hidden_act is \"{}\", must be silu", activation.substr(0, 64));
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    TROUPE_ASSIGN_OR_RETURN(const bool bias, config.Boolean(key, false));
    if (bias)
      return InvalidArgument("{} is true, but biases of projections are not supported", key);
  }
  TROUPE_ASSIGN_OR_RETURN(const double dropout, config.Number("attention_dropout", 0.0));
  if (dropout != 0) {
    return InvalidArgument(
        "attention_dropout is {}, but dropout of attention weights is not supported", dropout);
  }
  if (const Json* quantization = config.Find("quantization_config")) {
    return InvalidArgument("quantization_config is {}, but quantized weights are not supported",
                           TextOf(*quantization));
  }
  // This is Mistral's one difference; if the key is absent, the window is 4096.
  const Json* window = config.FindEvenNull("sliding_window");
  const bool windowed = window == nullptr ? type == "mistral" : !window->is_null();
  if (windowed) {
    return InvalidArgument("sliding_window is {}, but attention over a window is not supported",
                           window == nullptr ? "absent, which means 4096" : TextOf(*window));
  }
  return OkStatus();
}

// Hugging Face and the job file have the same name for the one scaling that is supported.
constexpr char kScaledRope[] = "llama3";

struct Rope {
  double theta = 10000.0;
  std::optional<v1::RopeScaling> scaling;
};

// Parses `rope_scaling` or `rope_parameters`, which may contain rope_theta too.
StatusOr<Rope> ParseRope(const Json& object, const char* name, double theta, const Keys& config) {
  if (!object.is_object()) {
    return InvalidArgument("{} is {}, not an object", name, TextOf(object));
  }
  const Keys keys(object, fmt::format("{}.", name));
  Rope rope;
  TROUPE_ASSIGN_OR_RETURN(rope.theta, keys.Number("rope_theta", theta));
  TROUPE_ASSIGN_OR_RETURN(const std::string old_type, keys.Text("type", "default"));
  TROUPE_ASSIGN_OR_RETURN(const std::string type, keys.Text("rope_type", old_type.c_str()));
  TROUPE_ASSIGN_OR_RETURN(const double partial, keys.Number("partial_rotary_factor", 1.0));
  if (partial != 1.0) {
    return InvalidArgument(
        "{}.partial_rotary_factor is {}, but RoPE on a part of a head is not supported", name,
        partial);
  }
  if (type == "default") return rope;
  if (type != kScaledRope) {
    return InvalidArgument("{}.rope_type is \"{}\", must be default or {}", name,
                           type.substr(0, 64), kScaledRope);
  }
  v1::RopeScaling scaling;
  scaling.set_rope_type(kScaledRope);
  TROUPE_ASSIGN_OR_RETURN(const double factor, keys.Number("factor", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const double low, keys.Number("low_freq_factor", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const double high, keys.Number("high_freq_factor", std::nullopt));
  if (!(factor > 0) || !(low > 0) || !(high > low)) {
    return InvalidArgument(
        "{} has factor {}, low_freq_factor {}, high_freq_factor {}; all must be above 0, and "
        "high_freq_factor above low_freq_factor",
        name, factor, low, high);
  }
  // As in transformers, the value next to the object replaces the one in it.
  constexpr char kOriginal[] = "original_max_position_embeddings";
  const Keys& stated = config.Find(kOriginal) != nullptr ? config : keys;
  TROUPE_ASSIGN_OR_RETURN(const int64_t context, stated.Integer(kOriginal, std::nullopt));
  scaling.set_factor(factor);
  scaling.set_low_freq_factor(low);
  scaling.set_high_freq_factor(high);
  scaling.set_original_max_position_embeddings(context);
  rope.scaling = std::move(scaling);
  return rope;
}

Status ReadRope(const Keys& config, v1::ModelSpec* model) {
  const Json* theta_key = config.Find("rope_theta");
  TROUPE_ASSIGN_OR_RETURN(const double theta, config.Number("rope_theta", 10000.0));
  const Json* older = config.Find("rope_scaling");
  const Json* newer = config.Find("rope_parameters");
  Rope rope{.theta = theta, .scaling = std::nullopt};
  if (older != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(rope, ParseRope(*older, "rope_scaling", theta, config));
  }
  if (newer != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(const Rope stated, ParseRope(*newer, "rope_parameters", theta, config));
    const auto text = [](const Rope& from) {
      return from.scaling ? from.scaling->ShortDebugString() : "none";
    };
    if (older != nullptr && text(stated) != text(rope)) {
      return InvalidArgument("rope_parameters is {} but rope_scaling is {}", text(stated),
                             text(rope));
    }
    if (theta_key != nullptr && stated.theta != theta) {
      return InvalidArgument("rope_parameters.rope_theta is {} but rope_theta is {}", stated.theta,
                             theta);
    }
    rope = stated;
  }
  if (!(rope.theta > 0)) return InvalidArgument("rope_theta is {}, not above 0", rope.theta);
  model->set_rope_theta(rope.theta);
  if (rope.scaling) *model->mutable_rope_scaling() = *rope.scaling;
  TROUPE_ASSIGN_OR_RETURN(const double partial, config.Number("partial_rotary_factor", 1.0));
  if (partial == 1.0) return OkStatus();
  return InvalidArgument(
      "partial_rotary_factor is {}, but RoPE on a part of a head is not supported", partial);
}

}  // namespace

StatusOr<v1::ModelSpec> ParseHfConfig(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return InvalidArgument("it is not a JSON object");
  const Keys config(object, "");
  TROUPE_RETURN_IF_ERROR(CheckArithmetic(config));
  v1::ModelSpec model;
  TROUPE_ASSIGN_OR_RETURN(const int64_t vocabulary, config.Integer("vocab_size", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const int64_t hidden, config.Integer("hidden_size", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const int64_t ffn, config.Integer("intermediate_size", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const int64_t layers, config.Integer("num_hidden_layers", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const int64_t heads, config.Integer("num_attention_heads", std::nullopt));
  TROUPE_ASSIGN_OR_RETURN(const int64_t key_value_heads,
                          config.Integer("num_key_value_heads", heads));
  if (layers > kLayersMax) {
    return InvalidArgument("num_hidden_layers is {}, above {}", layers, kLayersMax);
  }
  if (config.Find("head_dim") == nullptr && hidden % heads != 0) {
    return InvalidArgument(
        "num_attention_heads is {}, which does not divide hidden_size = {}, and "
        "head_dim is absent",
        heads, hidden);
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t head_dim, config.Integer("head_dim", hidden / heads));
  TROUPE_ASSIGN_OR_RETURN(const double eps, config.Number("rms_norm_eps", 1e-6));
  TROUPE_ASSIGN_OR_RETURN(const bool tied, config.Boolean("tie_word_embeddings", false));
  TROUPE_ASSIGN_OR_RETURN(const int64_t positions, config.Integer("max_position_embeddings", 2048));
  if (!(eps > 0)) return InvalidArgument("rms_norm_eps is {}, not above 0", eps);
  model.set_pattern(fmt::format("(AD)x{}", layers));
  model.set_hidden_size(hidden);
  model.set_num_attention_heads(heads);
  model.set_num_key_value_heads(key_value_heads);
  model.set_head_dim(head_dim);
  model.set_intermediate_size(ffn);
  model.set_vocab_size(vocabulary);
  model.set_tie_word_embeddings(tied);
  model.set_norm_eps(eps);
  model.set_max_position_embeddings(positions);
  TROUPE_RETURN_IF_ERROR(ReadRope(config, &model));
  Json kept = Json::object();
  for (const char* key : kKeptKeys) {
    if (const Json* value = config.Find(key)) kept[key] = *value;
  }
  if (!kept.empty()) {
    model.set_export_config(kept.dump(-1, ' ', true, Json::error_handler_t::replace));
  }
  return model;
}

StatusOr<v1::ModelSpec> ReadHfConfig(FileSystem& files, const std::string& directory) {
  const std::string path = JoinPath(directory, kHfConfigFileName);
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, path, kConfigBytesMax, SymbolicLinks::kFollow));
  if (IsGitLfsPointer(text)) return Annotate(GitLfsPointerFault(), path);
  StatusOr<v1::ModelSpec> model = ParseHfConfig(text);
  if (!model.ok()) return Annotate(model.status(), path);
  return model;
}

StatusOr<std::string> HfConfigText(const v1::ModelSpec& model, NumberFormat format) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t layers, LlamaLayers(model));
  Json rope = {{"rope_type", "default"}};
  Json scaling = nullptr;
  if (model.has_rope_scaling() && model.rope_scaling().factor() != 1.0) {
    const v1::RopeScaling& given = model.rope_scaling();
    rope = {{"rope_type", kScaledRope},
            {"factor", given.factor()},
            {"low_freq_factor", given.low_freq_factor()},
            {"high_freq_factor", given.high_freq_factor()},
            {"original_max_position_embeddings", given.original_max_position_embeddings()}};
    scaling = rope;
  }
  rope["rope_theta"] = model.rope_theta();
  const std::string dtype(NameOf(format));
  Json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"attention_bias", false},
                 {"attention_dropout", 0.0},
                 {"dtype", dtype},
                 {"head_dim", model.head_dim()},
                 {"hidden_act", "silu"},
                 {"hidden_size", model.hidden_size()},
                 {"intermediate_size", model.intermediate_size()},
                 {"max_position_embeddings", model.max_position_embeddings()},
                 {"mlp_bias", false},
                 {"model_type", "llama"},
                 {"num_attention_heads", model.num_attention_heads()},
                 {"num_hidden_layers", layers},
                 {"num_key_value_heads", model.num_key_value_heads()},
                 {"rms_norm_eps", model.norm_eps()},
                 {"rope_parameters", rope},
                 {"rope_scaling", scaling},
                 {"rope_theta", model.rope_theta()},
                 {"tie_word_embeddings", model.tie_word_embeddings()},
                 {"torch_dtype", dtype},
                 {"vocab_size", model.vocab_size()}};
  if (model.has_export_config()) {
    const Json kept = Json::parse(model.export_config(), nullptr, /*allow_exceptions=*/false);
    if (!kept.is_object()) return InvalidArgument("model.export_config is not a JSON object");
    for (const auto& [key, value] : kept.items()) {
      if (!config.contains(key)) config[key] = value;
    }
  }
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace troupe
