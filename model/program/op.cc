#include "model/program/op.h"

#include <algorithm>

namespace troupe::model {

const char* Name(OpKind kind) {
  static constexpr const char* kNames[kNumOpKinds] = {"embedding",
                                                      "embedding_grad",
                                                      "rms_norm",
                                                      "add_rms_norm",
                                                      "rms_norm_grad",
                                                      "add",
                                                      "matmul",
                                                      "matmul_grad_input",
                                                      "matmul_grad_weight",
                                                      "rope",
                                                      "attention",
                                                      "attention_grad",
                                                      "split_heads",
                                                      "join_heads",
                                                      "shift",
                                                      "attention_part",
                                                      "attention_part_grad",
                                                      "swiglu",
                                                      "swiglu_grad",
                                                      "softmax_stats",
                                                      "softmax_rescale",
                                                      "cross_entropy",
                                                      "cross_entropy_grad",
                                                      "softmax_rescale_grad",
                                                      "softmax_stats_grad",
                                                      "softmax_stats_and_grad",
                                                      "copy",
                                                      "all_reduce",
                                                      "reduce_scatter",
                                                      "all_gather",
                                                      "exchange_heads",
                                                      "wait",
                                                      "accumulate",
                                                      "cast",
                                                      "control_totals",
                                                      "control_routed",
                                                      "sum_of_squares",
                                                      "control_reduce",
                                                      "control_halt",
                                                      "adamw",
                                                      "router_logits",
                                                      "router_logits_grad_input",
                                                      "router_logits_grad_weight",
                                                      "router_top_k",
                                                      "router_top_k_grad",
                                                      "router_loss",
                                                      "router_loss_grad",
                                                      "permute",
                                                      "permute_grad",
                                                      "all_to_all",
                                                      "grouped_matmul",
                                                      "grouped_matmul_grad_input",
                                                      "grouped_matmul_grad_weight",
                                                      "combine",
                                                      "combine_grad",
                                                      "router_bias",
                                                      "router_load",
                                                      "gather_routed",
                                                      "scatter_routed",
                                                      "router_slots",
                                                      "dropout",
                                                      "relayout",
                                                      "quantize",
                                                      "amax_history"};
  static_assert(static_cast<int>(OpKind::kAmaxHistory) + 1 == kNumOpKinds);
  return kNames[static_cast<int>(kind)];
}

const char* Name(CollectivePurpose purpose) {
  static constexpr const char* kNames[] = {"tensor",  "sequence", "context", "dispatch",
                                           "unshard", "gradient", "pipe",    "control"};
  return kNames[static_cast<int>(purpose)];
}

Range RowCut::Of(int64_t rows, int ranks, int index) const {
  if (owner >= 0) return {index <= owner ? 0 : rows, index < owner ? 0 : rows};
  const Range units = BalancedRange((rows + unit - 1) / unit, ranks, index);
  return {std::min(rows, units.begin * unit), std::min(rows, units.end * unit)};
}

}  // namespace troupe::model
