#include "model/blocks/mlp.h"

#include "model/blocks/parameters.h"

namespace troupe::model {

ValueId BuildMlp(ProgramBuilder& builder, const ModelConfig& config, int block, ValueId x,
                 const DropoutPolicy& dropout) {
  const std::string name = fmt::format("block{}.mlp.", block);
  const std::string layer = fmt::format("model.layers.{}.", LayerOfBlock(config.blocks, block));
  const int64_t hidden = config.hidden_size, ffn = config.intermediate_size;

  const ValueId norm =
      AddNorm(builder, config, name + "norm", layer + "post_attention_layernorm.weight");
  const ValueId gate_up_proj = AddFusedColumns(
      builder, name + "gate_up_proj", "gate_up", hidden,
      {{"gate", layer + "mlp.gate_proj.weight", ffn}, {"up", layer + "mlp.up_proj.weight", ffn}});
  const ValueId down_proj =
      AddRowParallel(builder, name + "down_proj", layer + "mlp.down_proj.weight", "ffn", hidden,
                     ffn, 1, ResidualInitStd(config));

  const ValueId normed = builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                                         {x, norm}, {name + "normed", name + "rstd"})[0];
  const ValueId copied = builder.CopyRows(normed, name + "copied");
  const ValueId gate_up =
      builder.Emit(OpKind::kMatmul, NoAttributes(), {copied, gate_up_proj}, name + "gate_up");
  const ValueId activated =
      builder.Emit(OpKind::kSwiGlu, NoAttributes(), {gate_up}, name + "activated");
  const ValueId partial = builder.Emit(OpKind::kMatmul, NoAttributes(), {activated, down_proj},
                                       name + "projected.partial");
  const ValueId projected = Drop(builder, dropout, fmt::format("block{}", block),
                                 builder.ReduceRows(partial, name + "projected"));
  return builder.Emit(OpKind::kAdd, NoAttributes(), {x, projected}, name + "sum");
}

}  // namespace troupe::model
