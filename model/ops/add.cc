// kAdd: y = a + b. Linear, so it may also add two Partial(sum) values with equal placements.
// kAccumulate: y += x, over the microbatches of a step.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value &a = *in[0], &b = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(b, a.dtype, a.dims.size()));
  for (size_t d = 0; d < a.dims.size(); ++d) {
    TROUPE_RETURN_IF_ERROR(ExpectSameExtent(a, static_cast<int>(d), b, static_cast<int>(d)));
  }
  for (int axis = 1; axis < kNumAxes; ++axis) {
    const AxisPlacement &p = a.placement.axes[axis], &q = b.placement.axes[axis];
    if (p != q || p == PartialMax()) {
      return InvalidArgument("inputs {} and {} are {} and {} on axis {}", a.name, b.name, ToText(p),
                             ToText(q), Name(static_cast<Axis>(axis)));
    }
  }
  return std::vector<ValueType>{{a.dtype, a.dims, a.placement, a.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  for (const ValueId input : op.inputs) {
    TROUPE_RETURN_IF_ERROR(context.Contribute(input, context.GradientOf(op.outputs[0])));
  }
  return OkStatus();
}

StatusOr<std::vector<ValueType>> InferAccumulate(const MeshView& mesh, const Attributes& attributes,
                                                 Inputs in) {
  const Value& x = *in[0];
  TROUPE_RETURN_IF_ERROR(ExpectType(x, DType::kFloat32, x.dims.size()));
  return std::vector<ValueType>{{x.dtype, x.dims, x.placement, x.segments}};
}

}  // namespace

OpRules AccumulateRules() { return {.infer = InferAccumulate, .accumulated_output = 0}; }
OpRules AddRules() { return {.infer = Infer, .differentiate = Differentiate, .in_place_input = 0}; }

}  // namespace troupe::model
