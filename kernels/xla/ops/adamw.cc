// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. As in PyTorch, eps
// is added to the bias-corrected root. A step that is not applied selects the old contents.
#include "kernels/xla/ops/control_lanes.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "model/program/control_word.h"

namespace troupe::kernels::xla {
namespace {

// Scalars that all elements of a step share.
struct Step {
  Tensor applies;  // i1
  Tensor scale;    // f32: clip factor / sum of weights
  Tensor rate;     // f32
  Tensor size;     // f32: rate / first correction
  Tensor inverse;  // f32: 1 / sqrt(second correction)
};

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

Step StepOf(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::AdamWAttributes>();
  const Tensor control = lowering.In(0);
  const Tensor one = text.Constant(Element::kF64, {}, 1);
  const auto narrow = [&](const Tensor& x) { return text.Convert(x, Element::kF32); };
  Step step;
  step.applies = UpdateApplies(text, control);
  const Tensor before = text.Reshape(lowering.In(2), {});
  const Tensor count = text.Add(before, 1);
  lowering.Store(lowering.op.inputs[2], text.Select(step.applies, count, before));
  const Tensor number = text.Convert(count, Element::kF64);
  const auto correction = [&](double beta) {
    return text.Subtract(one, text.Binary("power", text.Constant(Element::kF64, {}, beta), number));
  };
  const Tensor rate = text.Convert(text.Reshape(lowering.In(1), {}), Element::kF64);
  step.scale = narrow(GradientScale(text, control, attributes.max_norm));
  step.rate = narrow(rate);
  step.size = narrow(text.Divide(rate, correction(attributes.beta1)));
  step.inverse = narrow(text.Divide(one, text.Unary("sqrt", correction(attributes.beta2))));
  return step;
}

// The factor of each row: 1 - rate · weight_decay, or 1 without decay. f32, a scalar or of the
// value's shape.
Tensor DecayOf(const Lowering& lowering, const model::ParameterEntry& entry, const Step& step,
               const Shape& shape) {
  Function& text = lowering.text;
  const double weight_decay = lowering.attributes<model::AdamWAttributes>().weight_decay;
  const Tensor one = text.Constant(Element::kF32, {}, 1);
  const Tensor decayed = text.Subtract(one, text.Multiply(step.rate, weight_decay));
  std::vector<Tensor> parts;
  int64_t row = 0;
  const auto add = [&](const Tensor& factor, int64_t rows) {
    if (rows == 0) return;
    Shape part = shape;
    part[0] = rows;
    parts.push_back(text.Broadcast(factor, part, {}));
  };
  for (const auto& [rows, decays] : model::DecayRuns(entry)) {
    if (rows.begin == 0 && rows.end == shape[0]) return decays ? decayed : one;
    add(one, rows.begin - row);
    add(decays ? decayed : one, rows.size());
    row = rows.end;
  }
  add(one, shape[0] - row);
  return text.Concatenate(parts, 0);
}

void UpdateParameter(const Lowering& lowering, const Step& step, size_t p) {
  Function& text = lowering.text;
  const auto& attributes = lowering.attributes<model::AdamWAttributes>();
  const model::ParameterEntry& entry = lowering.program.parameters[p];
  const Tensor parameter = lowering.read(entry.value);
  if (ElementsOf(parameter.shape) == 0) return;
  const Tensor old_mean = lowering.read(entry.exp_avg);
  const Tensor old_square = lowering.read(entry.exp_avg_sq);
  const Tensor g = text.Multiply(text.Reshape(lowering.In(3 + p), parameter.shape), step.scale);
  const Tensor new_mean =
      text.Add(text.Multiply(old_mean, attributes.beta1), text.Multiply(g, 1.0 - attributes.beta1));
  const Tensor new_square = text.Add(text.Multiply(old_square, attributes.beta2),
                                     text.Multiply(text.Multiply(g, g), 1.0 - attributes.beta2));
  // The parameter is computed from the stored moments, so that each moment has one reader and is
  // changed in place.
  const Tensor mean = text.Select(step.applies, new_mean, old_mean);
  const Tensor square = text.Select(step.applies, new_square, old_square);
  const Tensor root =
      text.Add(text.Multiply(text.Unary("sqrt", square), step.inverse), attributes.eps);
  const Tensor moved =
      text.Subtract(text.Multiply(parameter, DecayOf(lowering, entry, step, parameter.shape)),
                    text.Divide(text.Multiply(mean, step.size), root));
  const Tensor result = text.Select(step.applies, moved, parameter);
  lowering.Store(entry.exp_avg, mean);
  lowering.Store(entry.exp_avg_sq, square);
  lowering.Store(entry.value, result);
  // A copy of `moved` that is selected by itself would make a TPU's compiler keep `moved` in
  // memory. A step that is not applied writes the copy that it has.
  if (entry.compute_copy != entry.value) lowering.Store(entry.compute_copy, result);
}

}  // namespace

Status AdamW(const Lowering& lowering) {
  const Step step = StepOf(lowering);
  for (size_t p = 0; p < lowering.program.parameters.size(); ++p) {
    lowering.ranks.EachWrites([&](const Lowering& rank) { UpdateParameter(rank, step, p); });
  }
  return OkStatus();
}

}  // namespace troupe::kernels::xla
