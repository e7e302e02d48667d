#include "kernels/xla/ops/experts/router_scores.h"

#include "kernels/xla/ops/largest.h"

namespace troupe::kernels::xla {

RouterScores ScoresOf(Function& text, const Tensor& logits, model::RouterScore score) {
  const int64_t experts = logits.shape[1];
  const Tensor largest = Largest(text, logits);
  const Tensor powers =
      text.Unary("exponential", text.Subtract(logits, EachExpert(text, largest, experts)));
  const Tensor sum = SumOfRows(text, powers);
  RouterScores of;
  of.log_sum = text.Add(largest, text.Unary("log", sum));
  of.scores = score == model::RouterScore::kSoftmax
                  ? text.Divide(powers, EachExpert(text, sum, experts))
                  : text.Unary("logistic", logits);
  return of;
}

Tensor SumOfRows(Function& text, const Tensor& x) { return text.Reduce("add", x, {1}); }

Tensor EachExpert(Function& text, const Tensor& rows, int64_t experts) {
  return text.Broadcast(rows, {rows.shape[0], experts}, {0});
}

}  // namespace troupe::kernels::xla
