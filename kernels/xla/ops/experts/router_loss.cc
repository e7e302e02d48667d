// The auxiliary and z losses of each sample row (formulas: model/ops/experts/router_loss.cc).
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/experts/router_scores.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

double AuxScale(const model::RouterAttributes& router) {
  const auto tokens = static_cast<double>(router.tokens);
  return router.aux_loss_coef * static_cast<double>(router.experts) /
         (static_cast<double>(router.top_k) * tokens * tokens);
}

double ZScale(const model::RouterAttributes& router) {
  return router.z_loss_coef / static_cast<double>(router.tokens);
}

// The load of the sample that contains each row of this rank.
struct LoadOfRows {
  Tensor routed;  // f[R,E]
  Tensor weight;  // f[R]
};

LoadOfRows EachRow(const Lowering& lowering, const Tensor& load, int64_t rows) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const int64_t samples = load.shape[0], lanes = load.shape[1], tokens = router.local_tokens;
  const Tensor all = text.Reshape(text.Broadcast(load, {samples, tokens, lanes}, {0, 2}),
                                  {samples * tokens, lanes});
  const Tensor own = lowering.RowsFrom(
      all,
      [](const Lowering& rank) {
        return static_cast<double>(rank.attributes<model::RouterAttributes>().first_row);
      },
      rows);
  return {text.Slice(own, 1, 0, router.experts), Column(text, own, router.experts)};
}

}  // namespace

Status RouterLoss(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const Tensor logits = lowering.In(0);
  const auto wide = [&](const Tensor& x) { return text.Convert(x, Element::kF64); };
  const auto total = [&](const Tensor& rows, double scale) {
    return text.Reshape(text.Multiply(SumOf(text, rows), scale), {1});
  };
  const RouterScores of = ScoresOf(text, logits, router.score);
  const LoadOfRows load = EachRow(lowering, lowering.In(2), logits.shape[0]);
  const Tensor aux = text.Divide(SumOfRows(text, text.Multiply(of.scores, load.routed)),
                                 SumOfRows(text, of.scores));
  const Tensor log_sum = wide(of.log_sum), weight = wide(load.weight);
  const Tensor routed =
      text.Reduce("add", wide(text.Slice(lowering.In(1), 1, 0, router.experts)), {0});
  const Tensor dropped = text.Subtract(SumOf(text, routed), wide(SumOf(text, lowering.In(3))));
  lowering.Accumulate(
      0, text.Concatenate(
             {total(text.Multiply(weight, wide(aux)), AuxScale(router)),
              total(text.Multiply(weight, text.Multiply(log_sum, log_sum)), ZScale(router)),
              text.Reshape(dropped, {1}), routed},
             0));
  return OkStatus();
}

Status RouterLossGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const Tensor logits = lowering.In(0);
  const auto each = [&](const Tensor& rows) { return EachExpert(text, rows, router.experts); };
  const RouterScores of = ScoresOf(text, logits, router.score);
  const LoadOfRows load = EachRow(lowering, lowering.In(1), logits.shape[0]);
  const Tensor p = text.Divide(of.scores, each(SumOfRows(text, of.scores)));
  const Tensor mean = SumOfRows(text, text.Multiply(p, load.routed));
  // For softmax the scores are p; for sigmoid ds/dl = s·(1-s).
  Tensor slope = p;
  if (router.score == model::RouterScore::kSigmoid) {
    slope = text.Multiply(p, text.Subtract(text.Constant(Element::kF32, {}, 1), of.scores));
  }
  const Tensor aux = text.Multiply(each(text.Multiply(load.weight, AuxScale(router))),
                                   text.Multiply(slope, text.Subtract(load.routed, each(mean))));
  const Tensor z =
      text.Multiply(each(text.Multiply(text.Multiply(load.weight, 2 * ZScale(router)), of.log_sum)),
                    text.Unary("exponential", text.Subtract(logits, each(of.log_sum))));
  lowering.Out(0, text.Add(aux, z));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
