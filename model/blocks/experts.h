// Block E: pre-norm mixture of SwiGLU experts with a residual.
//
//   n = norm(x);  weights, slots, counts = top_k(router(n))
//   y = x + combine(all_to_all⁻¹(experts(all_to_all(permute(n)))), weights) [+ shared(n)]
//
// Shared experts are placed between the dispatch and the experts, so they compute while rows are in
// flight. The router is float32. Banks are Shard(0) over the expert axis; all other parameters
// treat that axis as a data axis. Over tensor there are two modes. In the first, each expert's
// weights are split (gate|up by rows, down by columns). With sequence parallelism each rank then
// routes its own rows, which are gathered after the dispatch and scattered before the combination,
//
//   experts' rows = gather_routed(all_to_all(…));  … = all_to_all⁻¹(scatter_routed(partial sums))
//
// and without it all ranks route the same rows. In the second mode, experts are spread over expert
// × tensor, and the all_to_all runs among all these ranks.
//
// With gather_dispatch the rows, weights and choices are all-gathered over the ranks that share the
// experts, each rank permutes the choices of its own experts, and sums are reduce-scattered:
//
//   y = x + reduce_scatter(combine(experts(permute(all_gather(n))), all_gather(weights)))
//
// Tensor names on disk are those of Qwen3-MoE and DeepSeek: mlp.gate.weight,
// mlp.experts.E.{gate,up,down}_proj.weight, mlp.shared_experts.{gate,up,down}_proj.weight; the
// load-balancing bias is mlp.gate.e_score_correction_bias.
#ifndef TROUPE_MODEL_BLOCKS_EXPERTS_H_
#define TROUPE_MODEL_BLOCKS_EXPERTS_H_

#include "model/config.h"
#include "model/blocks/dropout.h"
#include "model/program/builder.h"

namespace troupe::model {

// The maximum of rows that an expert accepts from `rows` tokens: ceil(rows·top_k/experts·factor); 0
// (no limit) if the factor is 0.
int64_t ExpertCapacity(const ExpertConfig& experts, int64_t rows);

struct ExpertInputs {
  ValueId x;           // c[R,H]
  ValueId weights;     // f[rows of all tensor ranks], weights of the loss
  int64_t tokens;      // per whole sample
  bool spread_over_tensor;  // experts over expert × tensor; needs sequence parallelism
  bool gather_dispatch;     // use all_gather, not all_to_all
  DropoutPolicy dropout;    // applied to the block's output before the residual
};

// Returns y c[R,H] and appends the router's totals to program().router_totals. REQUIRES: the number
// of ranks over which experts are spread divides num_experts.
ValueId BuildExperts(ProgramBuilder& builder, const ModelConfig& config, int block,
                     const ExpertInputs& inputs);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_EXPERTS_H_
