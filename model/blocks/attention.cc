#include "model/blocks/attention.h"

#include "model/blocks/parameters.h"

namespace troupe::model {

ValueId BuildAttention(ProgramBuilder& builder, const ModelConfig& config, int block,
                       const AttentionInputs& inputs) {
  const auto [x, positions, documents, samples, tokens] = inputs;
  const std::string name = fmt::format("block{}.attention.", block);
  const std::string layer = fmt::format("model.layers.{}.", LayerOfBlock(config.blocks, block));
  const int64_t head = config.head_dim, hidden = config.hidden_size;
  const int64_t queries = config.num_attention_heads, keys = config.num_key_value_heads;
  const int64_t parts = builder.tensor_degree() * builder.context_degree();

  const ValueId norm = AddNorm(builder, config, name + "norm", layer + "input_layernorm.weight");
  const ValueId qkv_proj =
      AddFusedColumns(builder, name + "qkv_proj", "qkv", hidden,
                      {{"q", layer + "self_attn.q_proj.weight", queries * head, head},
                       {"k", layer + "self_attn.k_proj.weight", keys * head, head},
                       {"v", layer + "self_attn.v_proj.weight", keys * head, head}});
  const ValueId o_proj =
      AddRowParallel(builder, name + "o_proj", layer + "self_attn.o_proj.weight", "attention",
                     hidden, queries * head, head, ResidualInitStd(config));

  const ValueId normed = builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                                         {x, norm}, {name + "normed", name + "rstd"})[0];
  const ValueId copied = builder.CopyRows(normed, name + "copied");
  const ValueId qkv =
      builder.Emit(OpKind::kMatmul, NoAttributes(), {copied, qkv_proj}, name + "qkv");
  const ValueId rotated =
      builder.Emit(OpKind::kRope,
                   RopeAttributes{queries / builder.tensor_degree(), keys / builder.tensor_degree(), head, config.rope_theta,
                                  config.rope_scaling, false},
                   {qkv, positions}, name + "rotated");
  // Over context, rows are exchanged against heads, so that attention sees whole samples.
  CollectiveAttributes exchange = {GroupOf(Axis::kContext), CollectivePurpose::kContext};
  exchange.exchange = {samples, head, /*to_rows=*/false};
  const bool exchanges = builder.context_degree() > 1;
  const ValueId whole =
      exchanges ? builder.Emit(OpKind::kExchangeHeads, exchange, {rotated}, name + "exchanged") : rotated;
  AttentionAttributes attributes = {queries / parts, keys / parts, head, tokens, Mask()};
  std::vector<ValueId> seen = {whole};
  if (documents != kNoValue) {
    attributes.mask.kind = Mask::Kind::kDocument;
    seen.push_back(documents);
  }
  ValueId attention = builder.EmitAll(OpKind::kAttention, attributes, seen,
                                      {name + "output", name + "lse"})[0];
  if (exchanges) {
    exchange.exchange.to_rows = true;
    attention = builder.Emit(OpKind::kExchangeHeads, exchange, {attention}, name + "output.rows");
  }
  const ValueId partial = builder.Emit(OpKind::kMatmul, NoAttributes(), {attention, o_proj},
                                       name + "projected.partial");
  const ValueId projected = builder.ReduceRows(partial, name + "projected");
  return builder.Emit(OpKind::kAdd, NoAttributes(), {x, projected}, name + "sum");
}

}  // namespace troupe::model
