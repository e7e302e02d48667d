// Block E: pre-norm mixture of SwiGLU experts with a residual.
//
//   n = norm(x);  weights, slots, counts = top_k(router(n))
//   y = x + combine(all_to_all⁻¹(experts(all_to_all(permute(n)))), weights) [+ shared(n)]
//
// Shared experts come between the dispatch and the experts: they compute while rows travel.
// The router is float32. Banks are Shard(0) over the expert axis; to all else that axis is one more
// data axis. Over tensor either each expert's weights are split (gate|up by rows, down by columns):
// with sequence parallelism each rank routes its own rows, which are gathered behind the dispatch and
// scattered before the combination,
//
//   experts' rows = gather_routed(all_to_all(…));  … = all_to_all⁻¹(scatter_routed(partial sums))
//
// and without it all ranks route the same rows; or experts are spread over expert × tensor, and
// the all_to_all is of these ranks together.
//
// With gather_dispatch rows, weights and choices of the ranks over which experts are spread are gathered
// instead, each rank permutes the choices of its own experts, and sums are scattered:
//
//   y = x + reduce_scatter(combine(experts(permute(all_gather(n))), all_gather(weights)))
//
// Names on disk are those of Qwen3-MoE and DeepSeek: mlp.gate.weight,
// mlp.experts.E.{gate,up,down}_proj.weight, mlp.shared_experts.{gate,up,down}_proj.weight; a bias that
// balances is mlp.gate.e_score_correction_bias.
#ifndef TROUPE_MODEL_BLOCKS_EXPERTS_H_
#define TROUPE_MODEL_BLOCKS_EXPERTS_H_

#include "model/config.h"
#include "model/blocks/dropout.h"
#include "model/program/builder.h"

namespace troupe::model {

// Rows that an expert takes of `rows` tokens: ceil(rows·top_k/experts·factor); 0 (all) if the
// factor is 0.
int64_t ExpertCapacity(const ExpertConfig& experts, int64_t rows);

struct ExpertInputs {
  ValueId x;           // c[R,H]
  ValueId weights;     // f[rows of all tensor ranks], of the loss
  int64_t tokens;      // of a whole sample
  bool spread_over_tensor;  // experts over expert × tensor; needs sequence parallelism
  bool gather_dispatch;     // all_gather, not all_to_all
  DropoutPolicy dropout;    // of what is added to x
};

// Returns y c[R,H] and appends the router's totals to program().router_totals. REQUIRES: the degrees
// over which experts are spread divide num_experts.
ValueId BuildExperts(ProgramBuilder& builder, const ModelConfig& config, int block,
                     const ExpertInputs& inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_EXPERTS_H_
