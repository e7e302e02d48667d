// The k best experts of each token, their weights, and the row of each choice in a buffer sorted by
// expert, then token.
#include <cmath>

#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/experts/router_scores.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

// i1[R,k,E]: whether choice j of row r is expert e, and tensors of two of these dims for all three.
class Chosen {
 public:
  Chosen(Function& text, const Tensor& experts, int64_t count)
      : text_(text), shape_{experts.shape[0], experts.shape[1], count} {
    is_ = text.Compare("EQ", text.Broadcast(experts, shape_, {0, 1}),
                       text.Iota(Element::kI32, shape_, 2));
  }

  // f[R,E] → f[R,k]: the numbers of the chosen experts.
  Tensor Of(const Tensor& by_expert) const { return Sum(by_expert, {0, 2}, 2); }
  // f[R,k] → f[R,E]: zeros for the others.
  Tensor ByExpert(const Tensor& by_choice) const { return Sum(by_choice, {0, 1}, 1); }
  // f[R] → f[R,k].
  Tensor EachChoice(const Tensor& rows) const {
    return text_.Broadcast(rows, {shape_[0], shape_[1]}, {0});
  }

 private:
  Tensor Sum(const Tensor& x, const std::vector<int>& dims, int over) const {
    return text_.Reduce(
        "add",
        text_.Select(is_, text_.Broadcast(x, shape_, dims), text_.Constant(x.element, {}, 0)),
        {over});
  }

  Function& text_;
  Shape shape_;
  Tensor is_;
};

// Slots i32[N] of the choices experts i32[N]: -1 beyond the capacity, unless that is 0.
Tensor SlotsOf(Function& text, const Tensor& experts, const Tensor& chosen, const Tensor& kept,
               int64_t capacity) {
  const Ascending sorted = SortAscending(text, experts);
  Tensor slots = text.Iota(Element::kI32, experts.shape, 0);
  if (capacity > 0) {
    const auto first = [&](const Tensor& counts) {
      return text.Gather(SumsBefore(text, counts), sorted.numbers);
    };
    const Tensor within = text.Subtract(slots, first(chosen));
    slots = text.Select(text.Compare("LT", within, static_cast<double>(capacity)),
                        text.Add(first(kept), within), text.Constant(Element::kI32, {}, -1));
  }
  return AtIndices(text, sorted.indices, slots);
}

}  // namespace

Status RouterTopK(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const Tensor scores = ScoresOf(text, lowering.In(0), router.score).scores;
  Tensor keys = scores;
  if (lowering.inputs() > 1)
    keys = text.Add(keys, text.Broadcast(lowering.In(1), scores.shape, {1}));
  // A NaN, which has no place in an order, is chosen first and so reaches the weights.
  keys =
      text.Select(text.Compare("EQ", keys, keys), keys, text.Constant(Element::kF32, {}, INFINITY));
  const Tensor best = text.SortDescending(keys, text.Iota(Element::kI32, scores.shape, 1)).second;
  const Tensor experts = text.Slice(best, 1, 0, router.top_k);
  const Chosen of(text, experts, router.experts);
  Tensor weights = of.Of(scores);
  if (router.normalise) weights = text.Divide(weights, of.EachChoice(SumOfRows(text, weights)));

  const Tensor flat = text.Reshape(experts, {ElementsOf(experts.shape)});
  const Tensor chosen = CountsOfEach(text, flat, router.experts);
  Tensor kept = chosen;
  if (router.capacity > 0) {
    kept = text.Binary("minimum", chosen,
                       text.Constant(Element::kI32, {}, static_cast<double>(router.capacity)));
  }
  lowering.Out(0, weights);
  lowering.Out(1, experts);
  lowering.Out(2, SlotsOf(text, flat, chosen, kept, router.capacity));
  lowering.Out(3, kept);
  return OkStatus();
}

Status RouterTopKGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const Tensor scores = ScoresOf(text, lowering.In(1), router.score).scores;
  const Chosen of(text, lowering.In(2), router.experts);
  Tensor dweights = lowering.In(0);
  if (router.normalise) {
    const Tensor chosen = of.Of(scores), sum = of.EachChoice(SumOfRows(text, chosen));
    const Tensor mean = SumOfRows(text, text.Divide(text.Multiply(dweights, chosen), sum));
    dweights = text.Divide(text.Subtract(dweights, of.EachChoice(mean)), sum);
  }
  const Tensor gradient = of.ByExpert(dweights);
  if (router.score == model::RouterScore::kSoftmax) {
    const Tensor mean = SumOfRows(text, text.Multiply(scores, gradient));
    lowering.Out(
        0, text.Multiply(scores, text.Subtract(gradient, EachExpert(text, mean, router.experts))));
    return OkStatus();
  }
  const Tensor slope =
      text.Multiply(scores, text.Subtract(text.Constant(Element::kF32, {}, 1), scores));
  lowering.Out(0, text.Multiply(gradient, slope));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
