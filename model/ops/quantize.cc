// kQuantize: a value in 8 bits with the scales that give it back, as it lies or transposed, and kAmaxHistory, which moves
// the histories of delayed scaling on.
#include <utility>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"

namespace troupe::model {
namespace {

// A largest magnitude is one of this rank's part.
Placement AmaxPlacement() {
  Placement placement;
  for (int a = 1; a < kNumAxes; ++a) placement.axes[a] = PartialMax();
  return placement;
}

Placement Transposed(Placement placement) {
  for (AxisPlacement& axis : placement.axes) {
    if (axis.kind == PlacementKind::kShard) axis.dim = static_cast<int8_t>(1 - axis.dim);
  }
  return placement;
}

StatusOr<std::vector<ValueType>> InferQuantize(const MeshView& mesh, const Attributes& attributes, Inputs in) {
  const auto& quantize = std::get<QuantizeAttributes>(attributes);
  const Value& x = *in[0];
  TROUPE_RETURN_IF_ERROR(ExpectType(x, DType::kBFloat16, 2));
  if (!IsFloat8(quantize.format) || (!quantize.rows && !quantize.columns)) {
    return InvalidArgument("{} is quantised to {}, {} forms of it", x.name, Name(quantize.format),
                           quantize.rows + quantize.columns);
  }
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = x.placement.axes[a];
    const bool is_partial =
        placement.kind == PlacementKind::kPartialSum || placement.kind == PlacementKind::kPartialMax;
    if (!is_partial && placement.run == 0 && placement.shift == 0) continue;
    return InvalidArgument("input {} is {} on axis {}: what is quantised is whole or a rank's own part", x.name,
                           ToText(placement), Name(static_cast<Axis>(a)));
  }
  if (in.size() > 1) {
    TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kFloat32, 1));
    if (in[1]->dims[0].local != kAmaxSteps || in[1]->placement != Placement() || quantize.block_rows != 0) {
      return InvalidArgument("input {} of {} steps, {}, is no history of one scale", in[1]->name,
                             in[1]->dims[0].local, ToText(in[1]->placement));
    }
  }
  std::vector<ValueType> types, scales;
  for (const bool transposed : {false, true}) {
    if (!(transposed ? quantize.columns : quantize.rows)) continue;
    ValueType form = {quantize.format, x.dims, x.placement, x.segments};
    if (transposed) {
      std::swap(form.dims[0], form.dims[1]);
      form.placement = Transposed(x.placement);
    }
    ScaleShape scale = ScaleShapeOf(mesh, form.dims, form.placement, quantize.block_rows);
    if (scales.empty() || quantize.block_rows > 0) {
      scales.push_back({DType::kFloat32, std::move(scale.dims), scale.placement, {}});
    }
    types.push_back(std::move(form));
  }
  types.insert(types.end(), scales.begin(), scales.end());
  if (quantize.folds) types.push_back({DType::kFloat32, {{"amax", 1, 1}}, AmaxPlacement(), {}});
  return types;
}

StatusOr<std::vector<ValueType>> InferHistory(const MeshView& mesh, const Attributes& attributes, Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[0], DType::kFloat64, 1));
  const size_t count = (in.size() - 1) / 2;
  if (in.size() != 1 + 2 * count) return InvalidArgument("{} inputs are not a history each", in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const Value& value = *in[i];
    if (value.placement != Placement()) {
      return InvalidArgument("input {} is {} where R is due on every axis: reduce it first", value.name,
                             ToText(value.placement));
    }
    if (i == 0) continue;
    TROUPE_RETURN_IF_ERROR(ExpectType(value, DType::kFloat32, 1));
    const int64_t due = i <= count ? 1 : kAmaxSteps;
    if (value.dims[0].local != due) {
      return InvalidArgument("input {} has {} numbers where {} are due", value.name, value.dims[0].local, due);
    }
  }
  return std::vector<ValueType>{};
}

}  // namespace

OpRules QuantizeRules() { return {.infer = InferQuantize}; }
OpRules AmaxHistoryRules() { return {.infer = InferHistory}; }

}  // namespace troupe::model
