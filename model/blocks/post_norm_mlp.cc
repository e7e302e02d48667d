// Block G: SwiGLU MLP with a residual, whose norm comes after its matmuls, as in OLMo 2.
//
//   y = x + norm(ReduceRows(down_proj(swiglu(gate_up_proj(CopyRows(x))))))
//
// The matrices are sharded over tensor as in block D.
#include <fmt/format.h>

#include "model/blocks/block_kind.h"
#include "model/blocks/parameters.h"

namespace troupe::model {
namespace {

ValueId BuildPostNormMlp(ProgramBuilder& builder, const BuildOptions& options,
                         const BlockInputs& inputs) {
  const ModelConfig& config = options.model;
  const std::string name = fmt::format("block{}.post_norm_mlp.", inputs.block);
  const std::string layer = fmt::format("model.layers.{}.", inputs.layer);
  const int64_t hidden = config.hidden_size, ffn = config.intermediate_size;

  const ValueId gate_up_proj = AddFusedColumns(
      builder, name + "gate_up_proj", "gate_up", hidden,
      {{"gate", layer + "mlp.gate_proj.weight", ffn}, {"up", layer + "mlp.up_proj.weight", ffn}});
  const ValueId down_proj =
      AddRowParallel(builder, name + "down_proj", layer + "mlp.down_proj.weight", "ffn", hidden,
                     ffn, 1, ResidualInitStd(config));
  const ValueId norm =
      AddNorm(builder, config, name + "norm", layer + "post_feedforward_layernorm.weight");

  const ValueId copied = builder.CopyRows(inputs.x, name + "copied");
  const ValueId gate_up =
      builder.Emit(OpKind::kMatmul, NoAttributes(), {copied, gate_up_proj}, name + "gate_up");
  const ValueId activated =
      builder.Emit(OpKind::kSwiGlu, NoAttributes(), {gate_up}, name + "activated");
  const ValueId partial = builder.Emit(OpKind::kMatmul, NoAttributes(), {activated, down_proj},
                                       name + "projected.partial");
  const ValueId projected = builder.ReduceRows(partial, name + "projected");
  const ValueId normed = builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                                         {projected, norm}, {name + "normed", name + "rstd"})[0];
  const ValueId dropped =
      Drop(builder, inputs.dropout, fmt::format("block{}", inputs.block), normed);
  return builder.Emit(OpKind::kAdd, NoAttributes(), {inputs.x, dropped}, name + "sum");
}

int64_t PostNormMlpParameters(const ModelConfig& model) {
  return model.hidden_size * model.intermediate_size * 3 + model.hidden_size;
}

BlockFlops PostNormMlpFlops(const ModelConfig& model, double samples, double tokens) {
  return {2 * samples * tokens * static_cast<double>(model.hidden_size) *
          static_cast<double>(model.intermediate_size) * 3};
}

}  // namespace

constinit const BlockKind kPostNormMlpBlock = {.letter = 'G',
                                               .build = BuildPostNormMlp,
                                               .parameters = PostNormMlpParameters,
                                               .flops = PostNormMlpFlops,
                                               .has_linear_layers = true,
                                               .reads_intermediate_size = true};

}  // namespace troupe::model
