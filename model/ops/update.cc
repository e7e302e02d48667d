// The operations of Update: kControlTotals, kControlRouted, kSumOfSquares, kControlReduce,
// kControlHalt, kCountStep and the optimizers. The control word is Partial on every axis until
// control_reduce; later operations require the reduced word, and optimizers require gradients that
// are Partial on no axis.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/shared_heads.h"

namespace troupe::model {
namespace {

Status ExpectOnAllAxes(const Value& value, AxisPlacement due) {
  for (int a = 1; a < kNumAxes; ++a) {
    if (value.placement.axes[a] == due) continue;
    return InvalidArgument("input {} is {} on axis {}, must be {}", value.name,
                           ToText(value.placement.axes[a]), Name(static_cast<Axis>(a)),
                           ToText(due));
  }
  return OkStatus();
}

Status ExpectReduced(const Value& gradient) {
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = gradient.placement.axes[a];
    if (placement.kind == PlacementKind::kReplicated) continue;
    if (placement.kind == PlacementKind::kShard &&
        (placement.run == 0 || placement.across == PlacementKind::kShard ||
         IsSharedHeads(placement))) {
      continue;
    }
    return InvalidArgument("gradient {} is {} on axis {}: it must be reduced first", gradient.name,
                           ToText(placement), Name(static_cast<Axis>(a)));
  }
  return OkStatus();
}

ValueType TypeOf(const Value& value) {
  return {value.dtype, value.dims, value.placement, value.segments};
}

StatusOr<std::vector<ValueType>> InferTotals(const MeshView& mesh, const Attributes& attributes,
                                             Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[0], PartialSum()));
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kFloat64, 1));
  return std::vector<ValueType>{TypeOf(*in[0])};
}

StatusOr<std::vector<ValueType>> InferRouted(const MeshView& mesh, const Attributes& attributes,
                                             Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[0], PartialSum()));
  for (const Value* totals : in.subspan(1)) {
    TROUPE_RETURN_IF_ERROR(ExpectType(*totals, DType::kFloat64, 1));
    if (totals->dims[0].local > kRouterLanes) continue;
    return InvalidArgument("input {} has {} lanes, more than there can be experts", totals->name,
                           totals->dims[0].local);
  }
  return std::vector<ValueType>{TypeOf(*in[0])};
}

StatusOr<std::vector<ValueType>> InferSumOfSquares(const MeshView& mesh,
                                                   const Attributes& attributes, Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[0], PartialSum()));
  for (const Value* gradient : in.subspan(1)) {
    TROUPE_RETURN_IF_ERROR(ExpectType(*gradient, DType::kFloat32, gradient->dims.size()));
    TROUPE_RETURN_IF_ERROR(ExpectReduced(*gradient));
  }
  return std::vector<ValueType>{TypeOf(*in[0])};
}

StatusOr<std::vector<ValueType>> InferControlReduce(const MeshView& mesh,
                                                    const Attributes& attributes, Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[0], PartialSum()));
  ValueType type = TypeOf(*in[0]);
  type.placement = {};
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferControlHalt(const MeshView& mesh,
                                                  const Attributes& attributes, Inputs in) {
  for (const Value* value : in) {
    TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*value, Replicated()));
    TROUPE_RETURN_IF_ERROR(ExpectType(*value, DType::kFloat64, 1));
  }
  return std::vector<ValueType>{};
}

StatusOr<std::vector<ValueType>> InferCountStep(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[0], Replicated()));
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[1], Replicated()));
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kFloat32, 1));
  return std::vector<ValueType>{};
}

// An optimizer that keeps `kept` values of each parameter.
StatusOr<std::vector<ValueType>> InferOptimizer(Inputs in, int kept) {
  const size_t operands = 3 + static_cast<size_t>(kept);
  if (in.size() < kUpdateScalars || (in.size() - kUpdateScalars) % operands != 0) {
    return InvalidArgument("it has {} inputs, must have {} and {} for each parameter", in.size(),
                           kUpdateScalars, operands);
  }
  TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*in[0], Replicated()));
  for (const Value* value : in.subspan(1, 2)) {
    TROUPE_RETURN_IF_ERROR(ExpectOnAllAxes(*value, Replicated()));
    TROUPE_RETURN_IF_ERROR(ExpectType(*value, DType::kFloat32, 1));
  }
  for (size_t at = kUpdateScalars; at < in.size(); at += operands) {
    const Value& master = *in[at + 1];
    TROUPE_RETURN_IF_ERROR(ExpectReduced(*in[at]));
    for (const Value* value : in.subspan(at, operands)) {
      if (value->elements() == master.elements()) continue;
      return InvalidArgument("input {} has {} elements, the parameter {} has {}", value->name,
                             value->elements(), master.name, master.elements());
    }
  }
  return std::vector<ValueType>{};
}

int AdamWStates(const Attributes&) { return 2; }

StatusOr<std::vector<ValueType>> InferAdamW(const MeshView& mesh, const Attributes& attributes,
                                            Inputs in) {
  return InferOptimizer(in, AdamWStates(attributes));
}

int SgdStates(const Attributes& attributes) {
  return std::get<SgdAttributes>(attributes).momentum == 0 ? 0 : 1;
}

StatusOr<std::vector<ValueType>> InferSgd(const MeshView& mesh, const Attributes& attributes,
                                          Inputs in) {
  return InferOptimizer(in, SgdStates(attributes));
}

}  // namespace

OpRules ControlTotalsRules() { return {.infer = InferTotals, .in_place_input = 0}; }
OpRules ControlRoutedRules() { return {.infer = InferRouted, .in_place_input = 0}; }
OpRules SumOfSquaresRules() { return {.infer = InferSumOfSquares, .in_place_input = 0}; }
OpRules ControlReduceRules() {
  return {.infer = InferControlReduce,
          .in_place_input = 0,
          .collective = CollectiveRules{CollectivePattern::kAllReduce}};
}
OpRules ControlHaltRules() { return {.infer = InferControlHalt}; }
OpRules CountStepRules() { return {.infer = InferCountStep}; }
OpRules AdamWRules() { return {.infer = InferAdamW, .kept_states = AdamWStates}; }
OpRules SgdRules() { return {.infer = InferSgd, .kept_states = SgdStates}; }

}  // namespace troupe::model
