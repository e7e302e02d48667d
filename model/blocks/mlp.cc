// Block D: pre-norm SwiGLU MLP with a residual.
//
//   y = x + ReduceRows(down_proj(swiglu(gate_up_proj(CopyRows(norm(x))))))
//
// gate|up is column-parallel over tensor, each segment sharded separately; down_proj is
// row-parallel.
#include <fmt/format.h>

#include "model/blocks/block_kind.h"
#include "model/blocks/parameters.h"

namespace troupe::model {
namespace {

ValueId BuildMlp(ProgramBuilder& builder, const BuildOptions& options, const BlockInputs& inputs) {
  const ModelConfig& config = options.model;
  const ValueId x = inputs.x;
  const std::string name = fmt::format("block{}.mlp.", inputs.block);
  const std::string layer = fmt::format("model.layers.{}.", inputs.layer);
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
  const ValueId projected = Drop(builder, inputs.dropout, fmt::format("block{}", inputs.block),
                                 builder.ReduceRows(partial, name + "projected"));
  return builder.Emit(OpKind::kAdd, NoAttributes(), {x, projected}, name + "sum");
}

int64_t MlpParameters(const ModelConfig& model) {
  return model.hidden_size * model.intermediate_size * 3 + model.hidden_size;
}

BlockFlops MlpFlops(const ModelConfig& model, double samples, double tokens) {
  return {2 * samples * tokens * static_cast<double>(model.hidden_size) *
          static_cast<double>(model.intermediate_size) * 3};
}

}  // namespace

constinit const BlockKind kMlpBlock = {.letter = 'D',
                                       .build = BuildMlp,
                                       .parameters = MlpParameters,
                                       .flops = MlpFlops,
                                       .has_linear_layers = true,
                                       .reads_intermediate_size = true};

}  // namespace troupe::model
