#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/xla/ops/control_lanes.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "model/program/control_word.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels::xla {

Tensor Lane(Function& text, const Tensor& control, int64_t lane) {
  return text.Reshape(text.Slice(control, 0, lane, lane + 1), {});
}

Tensor WithLane(Function& text, const Tensor& control, int64_t lane, const Tensor& number) {
  return text.Update(control, text.Reshape(number, {1}), lane);
}

Tensor UpdateApplies(Function& text, const Tensor& control) {
  const Tensor runs =
      text.Binary("and", text.Compare("EQ", Lane(text, control, model::kLaneNonfinite), 0),
                  text.Compare("EQ", Lane(text, control, model::kLaneHalted), 0));
  const Tensor squares = Lane(text, control, model::kLaneSumOfSquares);
  return text.Binary("and", runs, text.Unary("is_finite", squares));
}

Tensor MarkedNonfinite(const Lowering& lowering, const Tensor& control, const Tensor& is_finite) {
  Function& text = lowering.text;
  const Tensor before = Lane(text, control, model::kLaneNonfinite);
  const Tensor tag = lowering.Number(Element::kF64, [](const Lowering& rank) {
    return 1.0 + rank.attributes<model::ControlAttributes>().rank;
  });
  const Tensor marked = text.Binary("maximum", before, tag);
  return WithLane(text, control, model::kLaneNonfinite, text.Select(is_finite, before, marked));
}

namespace {

Tensor WithSum(Function& text, const Tensor& control, int64_t lane, const Tensor& number) {
  return WithLane(text, control, lane, text.Add(Lane(text, control, lane), number));
}

// Tensors of fewer elements are not worth more text.
constexpr int64_t kManyElements = 1 << 16;
constexpr int64_t kParts = 8;

// The squares of x in f64. Those of a large tensor are added up to an eighth of their number, in
// one operation on the elements: the compiler stores what it reduces, here 8 bytes an element.
Tensor SquaresOf(Function& text, const Tensor& x) {
  const auto squares = [&](const Tensor& part) {
    const Tensor wide = text.Convert(part, Element::kF64);
    return text.Multiply(wide, wide);
  };
  if (ElementsOf(x.shape) < kManyElements || x.shape[0] % kParts != 0) return squares(x);
  const int64_t rows = x.shape[0] / kParts;
  Tensor sum = squares(text.Slice(x, 0, 0, rows));
  for (int64_t part = 1; part < kParts; ++part)
    sum = text.Add(sum, squares(text.Slice(x, 0, part * rows, (part + 1) * rows)));
  return sum;
}

// The control word is changed in place.
void SetControl(const Lowering& lowering, const Tensor& control) {
  lowering.Store(lowering.op.inputs[0], control);
}

}  // namespace

Status ControlTotals(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor totals = lowering.In(1);
  const Tensor loss = Lane(text, totals, 0), weight = Lane(text, totals, 1);
  Tensor control = WithSum(text, lowering.In(0), model::kLaneLoss, loss);
  control = WithSum(text, control, model::kLaneWeight, weight);
  const Tensor finite =
      text.Binary("and", text.Unary("is_finite", loss), text.Unary("is_finite", weight));
  SetControl(lowering, MarkedNonfinite(lowering, control, finite));
  return OkStatus();
}

Status ControlRouted(const Lowering& lowering) {
  Function& text = lowering.text;
  Tensor control = lowering.In(0);
  for (size_t i = 1; i < lowering.inputs(); ++i) {
    const Tensor totals = lowering.In(i);
    control =
        WithSum(text, control, model::kLaneDropped, Lane(text, totals, model::kRouterDropped));
    const Tensor routed = text.Slice(totals, 0, model::kRouterLanes, totals.shape[0]);
    control = WithSum(text, control, model::kLaneRouted, text.Reduce("add", routed, {0}));
  }
  SetControl(lowering, control);
  return OkStatus();
}

// Ranks may count different gradients: each element of a model is counted on one rank.
Status SumOfSquares(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto counts = [](const Lowering& rank, model::ValueId gradient) {
    return rank.runs && std::ranges::find(rank.op.inputs, gradient) != rank.op.inputs.end();
  };
  std::vector<model::ValueId> gradients;
  for (const Lowering& rank : lowering.ranks.lowerings()) {
    for (const model::ValueId id : std::span(rank.op.inputs).subspan(1)) {
      if (std::ranges::find(gradients, id) == gradients.end()) gradients.push_back(id);
    }
  }
  const Tensor zero = text.Constant(Element::kF64, {}, 0);
  Tensor sum = zero;
  for (const model::ValueId id : gradients) {
    const Tensor squares = lowering.ranks.EachOne([&](const Lowering& rank) {
      const Tensor squares = SquaresOf(text, rank.read(id));
      std::vector<int> dims;
      for (size_t d = 0; d < squares.shape.size(); ++d) dims.push_back(static_cast<int>(d));
      return text.Reduce("add", squares, dims);
    });
    const auto& all = lowering.ranks.lowerings();
    if (std::ranges::all_of(all, [&](const Lowering& rank) { return counts(rank, id); })) {
      sum = text.Add(sum, squares);
      continue;
    }
    const Tensor counted = lowering.Number(
        Element::kI32, [&](const Lowering& rank) { return counts(rank, id) ? 1 : 0; });
    sum = text.Add(sum, text.Select(text.Compare("NE", counted, 0), squares, zero));
  }
  const Tensor control = WithSum(text, lowering.In(0), model::kLaneSumOfSquares, sum);
  SetControl(lowering, MarkedNonfinite(lowering, control, text.Unary("is_finite", sum)));
  return OkStatus();
}

Status ControlHalt(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor control = lowering.In(0);
  const Tensor squares = Lane(text, control, model::kLaneSumOfSquares);
  const Tensor good = text.Binary(
      "and",
      text.Binary("and", text.Compare("EQ", Lane(text, control, model::kLaneNonfinite), 0),
                  text.Unary("is_finite", squares)),
      text.Compare("GE", Lane(text, control, model::kLaneWeight), 0));
  const Tensor before = Lane(text, lowering.In(1), 0);
  const Tensor halted = text.Select(good, before, text.Constant(Element::kF64, {}, 1));
  lowering.Store(lowering.op.inputs[1], halted);
  SetControl(lowering, WithLane(text, control, model::kLaneHalted, halted));
  return OkStatus();
}

Status CountStep(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor before = lowering.In(1);
  const Tensor applies = UpdateApplies(text, lowering.In(0));
  lowering.Store(lowering.op.inputs[1], text.Select(applies, text.Add(before, 1), before));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
