// Block E: pre-norm mixture of SwiGLU experts with a residual.
//
//   n = norm(x);  weights, slots, counts = top_k(router(n))
//   y = x + combine(all_to_all⁻¹(experts(all_to_all(permute(n)))), weights) [+ shared(n)]
//
// The router is float32. Banks are Shard(0) over the expert axis; to all else that axis is one more
// data axis. Names on disk are those of Qwen3-MoE and DeepSeek: mlp.gate.weight,
// mlp.experts.E.{gate,up,down}_proj.weight, mlp.shared_experts.{gate,up,down}_proj.weight; a bias that
// balances is mlp.gate.e_score_correction_bias.
#ifndef TROUPE_MODEL_BLOCKS_EXPERTS_H_
#define TROUPE_MODEL_BLOCKS_EXPERTS_H_

#include "model/config.h"
#include "model/program/builder.h"

namespace troupe::model {

// Rows that an expert takes of `rows` tokens: ceil(rows·top_k/experts·factor); 0 (all) if the
// factor is 0.
int64_t ExpertCapacity(const ExpertConfig& experts, int64_t rows);

// x: c[R,H]; weights f[R]: of the loss. `tokens` of each sample. Returns y c[R,H] and appends the
// router's totals to program().router_totals. REQUIRES: the expert degree divides num_experts.
ValueId BuildExperts(ProgramBuilder& builder, const ModelConfig& config, int block, int64_t tokens,
                     ValueId x, ValueId weights);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_BLOCKS_EXPERTS_H_
