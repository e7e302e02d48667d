#include "kernels/xla/ops/optimizer.h"

#include <vector>

#include "kernels/xla/ops/control_lanes.h"
#include "kernels/xla/ops/ranks.h"
#include "model/program/control_word.h"

namespace troupe::kernels::xla {
namespace {

// DecideUpdate of kernels/backend/update_decision.h.
Tensor GradientScale(Function& text, const Tensor& control, double max_norm) {
  const Tensor weight = Lane(text, control, model::kLaneWeight);
  const Tensor zero = text.Constant(Element::kF64, {}, 0);
  const Tensor one = text.Constant(Element::kF64, {}, 1);
  const Tensor none = text.Compare("EQ", weight, 0);
  Tensor clip = one;
  if (max_norm > 0) {
    const Tensor norm =
        text.Divide(text.Unary("sqrt", Lane(text, control, model::kLaneSumOfSquares)), weight);
    const Tensor limit = text.Constant(Element::kF64, {}, max_norm);
    const Tensor more = text.Add(norm, 1e-6);
    clip = text.Select(text.Compare("LT", limit, more), text.Divide(limit, more), one);
  }
  return text.Select(none, zero, text.Divide(clip, weight));
}

}  // namespace

UpdateStep UpdateStepOf(const Lowering& lowering, double max_norm) {
  Function& text = lowering.text;
  const Tensor control = lowering.In(0);
  UpdateStep step;
  step.applies = UpdateApplies(text, control);
  step.rate = text.Convert(text.Reshape(lowering.In(1), {}), Element::kF64);
  step.scale = text.Convert(GradientScale(text, control, max_norm), Element::kF32);
  return step;
}

void EachUpdated(
    const Lowering& lowering, const UpdateStep& step,
    const std::function<void(const Lowering& rank, const ParameterToUpdate& of)>& update) {
  const size_t count = model::UpdatedParameters(lowering.op).size();
  for (size_t p = 0; p < count; ++p) {
    lowering.ranks.EachWrites([&](const Lowering& rank) {
      Function& text = rank.text;
      const model::UpdatedParameter operands = model::UpdatedParameters(rank.op)[p];
      const Tensor parameter = rank.read(operands.master);
      if (ElementsOf(parameter.shape) == 0) return;
      const Tensor gradient =
          text.Multiply(text.Reshape(rank.read(operands.gradient), parameter.shape), step.scale);
      update(rank, {operands, parameter, gradient});
    });
  }
}

Tensor ByDecay(const Lowering& rank, const ParameterToUpdate& of, const Tensor& decayed,
               double kept) {
  Function& text = rank.text;
  const Shape& shape = of.parameter.shape;
  const Tensor other = text.Constant(Element::kF32, {}, kept);
  std::vector<Tensor> parts;
  int64_t row = 0;
  const auto add = [&](const Tensor& factor, int64_t rows) {
    if (rows == 0) return;
    Shape part = shape;
    part[0] = rows;
    parts.push_back(text.Broadcast(factor, part, {}));
  };
  const model::ParameterEntry& entry = model::EntryOfMaster(rank.program, of.operands.master);
  for (const auto& [rows, decays] : model::DecayRuns(entry)) {
    if (rows.begin == 0 && rows.end == shape[0]) return decays ? decayed : other;
    add(other, rows.begin - row);
    add(decays ? decayed : other, rows.size());
    row = rows.end;
  }
  add(other, shape[0] - row);
  return text.Concatenate(parts, 0);
}

void StoreParameter(const Lowering& rank, const UpdateStep& step, const ParameterToUpdate& of,
                    const Tensor& moved) {
  const Tensor result = rank.text.Select(step.applies, moved, of.parameter);
  rank.Store(of.operands.master, result);
  // A copy of `moved` that is selected by itself would make a TPU's compiler keep `moved` in
  // memory. A step that is not applied writes the copy that it has.
  if (of.operands.has_copy()) rank.Store(of.operands.compute_copy, result);
}

}  // namespace troupe::kernels::xla
