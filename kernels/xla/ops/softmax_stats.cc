// Local statistics of a slice of the vocabulary (maximum, Σ exp(l - max), the target's logit) and
// their gradient.
#include "kernels/xla/ops/largest.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

// The first id of this rank's slice of the vocabulary.
Tensor FirstId(const Lowering& lowering) {
  return lowering.Number(Element::kI32, [](const Lowering& rank) {
    const auto* const of = std::get_if<model::VocabAttributes>(&rank.op.attributes);
    return of == nullptr ? 0.0 : static_cast<double>(of->vocab_offset);
  });
}

// i1[R,V]: whether column v is the target of row r.
Tensor IsTarget(const Lowering& lowering, const Shape& shape) {
  Function& text = lowering.text;
  const Tensor targets = text.Subtract(lowering.In(1), FirstId(lowering));
  return text.Compare("EQ", text.Iota(Element::kI32, shape, 1),
                      text.Broadcast(targets, shape, {0}));
}

struct Statistics {
  Tensor max, total, target;  // f[R]
  Tensor powers;              // f[R,V]: exp(l - max)
};

Statistics StatisticsOf(Function& text, const Tensor& logits, const Tensor& is_target) {
  const Tensor zero = text.Constant(Element::kF32, {}, 0);
  Statistics of;
  of.max = Largest(text, logits);
  of.powers =
      text.Unary("exponential", text.Subtract(logits, text.Broadcast(of.max, logits.shape, {0})));
  of.total = text.Reduce("add", of.powers, {1});
  of.target = text.Reduce("add", text.Select(is_target, logits, zero), {1});
  return of;
}

// y f[2,R] = {first, second}.
Tensor Pair(Function& text, const Tensor& first, const Tensor& second) {
  const Shape row = {1, first.shape[0]};
  return text.Concatenate({text.Reshape(first, row), text.Reshape(second, row)}, 0);
}

Tensor RowOf(Function& text, const Tensor& pair, int row) {
  return text.Reshape(text.Slice(pair, 0, row, row + 1), {pair.shape[1]});
}

}  // namespace

Status SoftmaxStats(const Lowering& lowering) {
  const Tensor logits = lowering.Float(0);
  const Statistics of = StatisticsOf(lowering.text, logits, IsTarget(lowering, logits.shape));
  lowering.Out(0, of.max);
  lowering.Out(1, Pair(lowering.text, of.total, of.target));
  return OkStatus();
}

Status SoftmaxRescale(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor sums = lowering.In(0);
  const Tensor factor = text.Unary("exponential", text.Subtract(lowering.In(1), lowering.In(2)));
  lowering.Out(0, Pair(text, text.Multiply(RowOf(text, sums, 0), factor), RowOf(text, sums, 1)));
  return OkStatus();
}

// The gradient is the same map, because the map is linear in its first input.
Status SoftmaxRescaleGrad(const Lowering& lowering) { return SoftmaxRescale(lowering); }

Status SoftmaxStatsGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor logits = lowering.Float(0), dsums = lowering.In(3);
  const auto each = [&](const Tensor& rows) { return text.Broadcast(rows, logits.shape, {0}); };
  const Tensor powers = text.Unary("exponential", text.Subtract(logits, each(lowering.In(2))));
  const Tensor at_target =
      text.Select(IsTarget(lowering, logits.shape), each(RowOf(text, dsums, 1)),
                  text.Constant(Element::kF32, {}, 0));
  lowering.Out(0, text.Add(text.Multiply(each(RowOf(text, dsums, 0)), powers), at_target));
  return OkStatus();
}

Status SoftmaxStatsAndGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const double z = lowering.attributes<model::LossAttributes>().z_loss_coef;
  const Tensor logits = lowering.Float(0), weights = lowering.In(2);
  const Tensor is_target = IsTarget(lowering, logits.shape);
  const Statistics of = StatisticsOf(text, logits, is_target);
  Tensor factor = text.Divide(weights, of.total);
  if (z != 0) {
    const Tensor lse = text.Add(text.Unary("log", of.total), of.max);
    factor = text.Multiply(factor, text.Add(text.Multiply(lse, 2 * z), 1));
  }
  const auto each = [&](const Tensor& rows) { return text.Broadcast(rows, logits.shape, {0}); };
  const Tensor at_target = text.Select(is_target, each(text.Unary("negate", weights)),
                                       text.Constant(Element::kF32, {}, 0));
  lowering.Out(0, text.Add(text.Multiply(each(factor), of.powers), at_target));
  lowering.Out(1, of.max);
  lowering.Out(2, Pair(text, of.total, of.target));
  return OkStatus();
}

// nll = log(sums0) + global_max - sums1; totals += {Σ weight·nll, Σ weight}.
Status CrossEntropy(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto wide = [&](const Tensor& x) { return text.Convert(x, Element::kF64); };
  const Tensor sums = lowering.In(1), weights = wide(lowering.In(2));
  const Tensor nll =
      text.Subtract(text.Add(text.Unary("log", wide(RowOf(text, sums, 0))), wide(lowering.In(0))),
                    wide(RowOf(text, sums, 1)));
  const auto total = [&](const Tensor& x) { return text.Reshape(text.Reduce("add", x, {0}), {1}); };
  lowering.Accumulate(0, text.Concatenate({total(text.Multiply(weights, nll)), total(weights)}, 0));
  return OkStatus();
}

// The gradient of nll + z·lse² with lse = log(sums0) + global_max.
Status CrossEntropyGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const double z = lowering.attributes<model::LossAttributes>().z_loss_coef;
  const Tensor sum = RowOf(text, lowering.In(0), 0), weights = lowering.In(1);
  Tensor factor = text.Divide(weights, sum);
  if (z > 0) {
    const Tensor lse = text.Add(text.Unary("log", sum), lowering.In(2));
    factor = text.Multiply(factor, text.Add(text.Multiply(lse, 2 * z), 1));
  }
  lowering.Out(0, Pair(text, factor, text.Unary("negate", weights)));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
