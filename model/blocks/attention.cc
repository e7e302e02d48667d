// Block A: pre-norm causal grouped-query attention, within documents if they are given, with RoPE
// and a residual.
//
//   y = x + ReduceRows(o_proj(attention(rope(qkv_proj(CopyRows(norm(x)))))))
//
// qkv_proj is column-parallel over tensor; its segments q, k and v are each sharded separately by
// whole heads. o_proj is row-parallel and returns Partial(sum). If the tensor degree is a multiple
// of the key and value heads, q_proj and kv_proj are separate parameters, and neighbours on tensor
// share a head of kv_proj (model/program/shared_heads.h).
#include <fmt/format.h>

#include <algorithm>

#include "base/sample_schema.h"
#include "model/blocks/block_kind.h"
#include "model/blocks/parameters.h"

namespace troupe::model {
namespace {

struct AttentionInputs {
  ValueId documents;  // i[R] of whole samples (see Mask), or kNoValue: a sample is one document
  int64_t samples;    // per microbatch
  int64_t tokens;     // per sample, over all context ranks
};

// Key and value heads on one of `parts` ranks. With more ranks than heads, several ranks hold the
// same head.
int64_t KeyValueHeadsOf(const ModelConfig& config, int64_t parts) {
  return std::max<int64_t>(1, config.num_key_value_heads / parts);
}

AttentionAttributes AttributesOf(const ModelConfig& config, const AttentionInputs& inputs,
                                 int64_t parts) {
  AttentionAttributes attributes = {config.num_attention_heads / parts,
                                    KeyValueHeadsOf(config, parts), config.head_dim, inputs.tokens,
                                    Mask()};
  if (inputs.documents != kNoValue) attributes.mask.kind = Mask::Kind::kDocument;
  return attributes;
}

// Attention over whole samples: with context parallelism, rows are exchanged against heads before
// and after it.
ValueId LocalAttention(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                       ValueId rotated, const AttentionInputs& inputs) {
  ExchangeHeadsAttributes exchange = {{GroupOf(Axis::kContext), CollectivePurpose::kContext},
                                      inputs.samples,
                                      config.head_dim,
                                      /*to_rows=*/false};
  const bool exchanges = builder.context_degree() > 1;
  const ValueId whole =
      exchanges ? builder.Emit(OpKind::kExchangeHeads, exchange, {rotated}, name + "exchanged")
                : rotated;
  std::vector<ValueId> seen = {whole};
  if (inputs.documents != kNoValue) seen.push_back(inputs.documents);
  const int64_t parts = builder.tensor_degree() * builder.context_degree();
  const ValueId attention = builder.EmitAll(OpKind::kAttention, AttributesOf(config, inputs, parts),
                                            seen, {name + "output", name + "lse"})[0];
  if (!exchanges) return attention;
  exchange.to_rows = true;
  return builder.Emit(OpKind::kExchangeHeads, exchange, {attention}, name + "output.rows");
}

// Ring attention: attends to the current keys and values while those of the next rank are in
// flight.
ValueId RingAttention(ProgramBuilder& builder, const ModelConfig& config, const std::string& name,
                      ValueId rotated, const AttentionInputs& inputs) {
  const std::vector<ValueId> split = builder.EmitAll(OpKind::kSplitHeads, NoAttributes(), {rotated},
                                                     {name + "queries", name + "keys_values"});
  const int ranks = static_cast<int>(builder.context_degree());
  const ShiftAttributes onward = {{GroupOf(Axis::kContext), CollectivePurpose::kContext}, 1};
  PartAttributes part = {AttributesOf(config, inputs, builder.tensor_degree())};
  std::vector<ValueId> merged;  // o and lse merged over the parts so far
  ValueId keys_values = split[1];
  for (part.shift = 0; part.shift < ranks; ++part.shift) {
    part.last = part.shift + 1 == ranks;
    const std::string number = fmt::format(".{}", part.shift);
    ValueId next = kNoValue;
    if (!part.last) {
      next = builder.Emit(OpKind::kShift, onward, {keys_values},
                          fmt::format("{}keys_values.{}", name, part.shift + 1));
    }
    std::vector<ValueId> seen = {split[0], keys_values};
    if (inputs.documents != kNoValue) seen.push_back(inputs.documents);
    seen.insert(seen.end(), merged.begin(), merged.end());
    merged = builder.EmitAll(OpKind::kAttentionPart, part, seen,
                             {name + "output" + number, name + "lse" + number});
    keys_values = next;
  }
  return merged[0];
}

// The weights of the q, k and v projections.
struct Projections {
  ValueId q_or_all = kNoValue;
  // The separate kv weights, if several tensor ranks share key and value heads.
  ValueId kv = kNoValue;
};

Projections AddProjections(ProgramBuilder& builder, const ModelConfig& config,
                           const std::string& name, const std::string& layer) {
  const int64_t head = config.head_dim, hidden = config.hidden_size;
  const int64_t queries = config.num_attention_heads, keys = config.num_key_value_heads;
  const FusedPart q = {"q", layer + "self_attn.q_proj.weight", queries * head, head};
  const FusedPart k = {"k", layer + "self_attn.k_proj.weight", keys * head, head};
  const FusedPart v = {"v", layer + "self_attn.v_proj.weight", keys * head, head};
  if (keys >= builder.tensor_degree()) {
    return {AddFusedColumns(builder, name + "qkv_proj", "qkv", hidden, {q, k, v})};
  }
  const ValueId of_q = AddFusedColumns(builder, name + "q_proj", "attention", hidden, {q});
  return {of_q, AddSharedColumns(builder, name + "kv_proj", "kv", hidden, keys, {k, v})};
}

// The fused q, k and v of `x`.
ValueId Project(ProgramBuilder& builder, const std::string& name, const Projections& projections,
                ValueId x) {
  const auto matmul = [&](ValueId weight, const char* made) {
    return builder.Emit(OpKind::kMatmul, NoAttributes(), {x, weight}, name + made);
  };
  if (projections.kv == kNoValue) return matmul(projections.q_or_all, "qkv");
  const ValueId queries = matmul(projections.q_or_all, "q");
  const ValueId keys_values = matmul(projections.kv, "kv");
  return builder.Emit(OpKind::kJoinHeads, NoAttributes(), {queries, keys_values}, name + "qkv");
}

// REQUIRES: the tensor degree divides the query heads; without a ring tensor × context divides
// them. The same holds for key and value heads, but if context is 1 or a ring they may instead
// divide the tensor degree.
ValueId BuildAttention(ProgramBuilder& builder, const BuildOptions& options,
                       const BlockInputs& block) {
  const ModelConfig& config = options.model;
  const AttentionInputs inputs = {builder.chunk().Input(channels::kDocuments),
                                  options.micro_batch_size, options.sequence_length};
  const ValueId x = block.x;
  const std::string name = fmt::format("block{}.attention.", block.block);
  const std::string layer = fmt::format("model.layers.{}.", block.layer);
  const int64_t head = config.head_dim, hidden = config.hidden_size;
  const int64_t queries = config.num_attention_heads;

  const ValueId norm = AddNorm(builder, config, name + "norm", layer + "input_layernorm.weight");
  const Projections projections = AddProjections(builder, config, name, layer);
  const ValueId o_proj =
      AddRowParallel(builder, name + "o_proj", layer + "self_attn.o_proj.weight", "attention",
                     hidden, queries * head, head, ResidualInitStd(config));

  const ValueId normed = builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                                         {x, norm}, {name + "normed", name + "rstd"})[0];
  const ValueId copied = builder.CopyRows(normed, name + "copied");
  const ValueId qkv = Project(builder, name, projections, copied);
  const ValueId rotated = builder.Emit(
      OpKind::kRope,
      RopeAttributes{queries / builder.tensor_degree(),
                     KeyValueHeadsOf(config, builder.tensor_degree()), head, config.rope_theta,
                     config.rope_scaling, false, options.buffer_dtype},
      {qkv, builder.chunk().Input(channels::kPositions)}, name + "rotated");
  const ValueId attention = options.ring_attention && builder.context_degree() > 1
                                ? RingAttention(builder, config, name, rotated, inputs)
                                : LocalAttention(builder, config, name, rotated, inputs);
  const ValueId partial = builder.Emit(OpKind::kMatmul, NoAttributes(), {attention, o_proj},
                                       name + "projected.partial");
  const ValueId projected = Drop(builder, block.dropout, fmt::format("block{}", block.block),
                                 builder.ReduceRows(partial, name + "projected"));
  return builder.Emit(OpKind::kAdd, NoAttributes(), {x, projected}, name + "sum");
}

int64_t QueryWidth(const ModelConfig& model) { return model.head_dim * model.num_attention_heads; }
int64_t KeyValueWidth(const ModelConfig& model) {
  return model.head_dim * model.num_key_value_heads;
}

int64_t AttentionParameters(const ModelConfig& model) {
  const int64_t hidden = model.hidden_size;
  return hidden * (2 * QueryWidth(model) + 2 * KeyValueWidth(model)) + hidden;
}

BlockFlops AttentionFlops(const ModelConfig& model, double samples, double tokens) {
  const double query = static_cast<double>(QueryWidth(model));
  const double key_value = static_cast<double>(KeyValueWidth(model));
  // Input and output projections; scores and values, over half of the square.
  return {.weights = 2 * (samples * tokens) * static_cast<double>(model.hidden_size) *
                     (2 * query + 2 * key_value),
          .pairs = 2 * samples * tokens * tokens * query};
}

}  // namespace

constinit const BlockKind kAttentionBlock = {.letter = 'A',
                                             .build = BuildAttention,
                                             .parameters = AttentionParameters,
                                             .flops = AttentionFlops,
                                             .attends = true,
                                             .begins_layer = true,
                                             .has_linear_layers = true};

}  // namespace troupe::model
