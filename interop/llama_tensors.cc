#include "interop/llama_tensors.h"

#include "model/blocks/pattern.h"

namespace troupe {
namespace {

// The same bound as in plan/validate: products of two sizes stay within 64 bits.
constexpr int64_t kMaxSize = int64_t{1} << 24;

constexpr std::string_view kLayer = "AD";  // the blocks of a layer: attention and MLP

Status CheckSizes(const v1::ModelSpec& model) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"hidden_size", model.hidden_size()},
      {"num_attention_heads", model.num_attention_heads()},
      {"num_key_value_heads", model.num_key_value_heads()},
      {"head_dim", model.head_dim()},
      {"intermediate_size", model.intermediate_size()},
      {"vocab_size", model.vocab_size()}};
  for (const auto& [key, size] : sizes) {
    if (size < 1 || size > kMaxSize) {
      return InvalidArgument("model.{} is {}, not from 1 to {}", key, size, kMaxSize);
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<int64_t> LlamaLayers(const v1::ModelSpec& model) {
  TROUPE_ASSIGN_OR_RETURN(const std::string blocks, model::ExpandPattern(model.pattern()));
  const size_t layers = blocks.size() / kLayer.size();
  if (const auto llama = model::ExpandPattern(fmt::format("({})x{}", kLayer, layers));
      !llama.ok() || blocks != *llama) {
    return InvalidArgument(
        "model.pattern is \"{}\", but each layer of Llama is an attention and an MLP block: (AD)xN",
        model.pattern().substr(0, 200));
  }
  return static_cast<int64_t>(layers);
}

StatusOr<std::vector<ModelTensor>> LlamaTensors(const v1::ModelSpec& model) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t layers, LlamaLayers(model));
  TROUPE_RETURN_IF_ERROR(CheckSizes(model));
  const int64_t hidden = model.hidden_size(), ffn = model.intermediate_size();
  const int64_t queries = model.num_attention_heads() * model.head_dim();
  const int64_t keys = model.num_key_value_heads() * model.head_dim();
  std::vector<ModelTensor> tensors = {{kEmbeddingTensor, {model.vocab_size(), hidden}}};
  for (int64_t n = 0; n < layers; ++n) {
    const std::string layer = fmt::format("model.layers.{}.", n);
    tensors.push_back({layer + "input_layernorm.weight", {hidden}});
    tensors.push_back({layer + "self_attn.q_proj.weight", {queries, hidden}});
    tensors.push_back({layer + "self_attn.k_proj.weight", {keys, hidden}});
    tensors.push_back({layer + "self_attn.v_proj.weight", {keys, hidden}});
    tensors.push_back({layer + "self_attn.o_proj.weight", {hidden, queries}});
    tensors.push_back({layer + "post_attention_layernorm.weight", {hidden}});
    tensors.push_back({layer + "mlp.gate_proj.weight", {ffn, hidden}});
    tensors.push_back({layer + "mlp.up_proj.weight", {ffn, hidden}});
    tensors.push_back({layer + "mlp.down_proj.weight", {hidden, ffn}});
  }
  tensors.push_back({"model.norm.weight", {hidden}});
  if (!model.tie_word_embeddings()) {
    tensors.push_back({kHeadTensor, {model.vocab_size(), hidden}});
  }
  return tensors;
}

}  // namespace troupe
