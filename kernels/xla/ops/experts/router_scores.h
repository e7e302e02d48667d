// The scores of tokens' logits. The functions append to the text and change nothing else.
#ifndef TROUPE_KERNELS_XLA_OPS_EXPERTS_ROUTER_SCORES_H_
#define TROUPE_KERNELS_XLA_OPS_EXPERTS_ROUTER_SCORES_H_

#include "kernels/xla/text/function.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels::xla {

// f[R,E] and log Σ exp(logits) f[R].
struct RouterScores {
  Tensor scores, log_sum;
};
RouterScores ScoresOf(Function& text, const Tensor& logits, model::RouterScore score);

// Σ over the experts, and a number of each row for every expert.
Tensor SumOfRows(Function& text, const Tensor& x);
Tensor EachExpert(Function& text, const Tensor& rows, int64_t experts);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_EXPERTS_ROUTER_SCORES_H_
