// kQuantize: converts a value to FP8 with its scales, in row-major or transposed storage.
// kAmaxHistory updates the histories of delayed scaling.
#include <utility>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"

namespace troupe::model {
namespace {

// An amax covers only this rank's part.
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

// The type of the quantised value: the first input, or the result of the source's fused function of
// its inputs.
StatusOr<Value> ValueOf(const MeshView& mesh, const QuantizeAttributes& quantize, Inputs in) {
  const QuantizeSource source = quantize.source;
  if (source == QuantizeSource::kValue) return *in[0];
  const bool is_gradient = source == QuantizeSource::kSwiGluGrad;
  const DType due = is_gradient ? DType::kFloat8E5M2 : DType::kFloat8E4M3;
  if (in.size() < InputsOf(source) || quantize.format != due || quantize.block_rows > 1) {
    return InvalidArgument(
        "the output of {} with {} inputs is quantised to {} in blocks of {} rows, must be {} with "
        "{} inputs in blocks of at most 1 row",
        Name(source), in.size(), Name(quantize.format), quantize.block_rows, Name(due),
        InputsOf(source));
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<ValueType> made,
                          RulesOf(is_gradient ? OpKind::kSwiGluGrad : OpKind::kSwiGlu)
                              .infer(mesh, NoAttributes(), in.first(InputsOf(source))));
  Value value;
  value.name = fmt::format("{} of {}", Name(source), in[0]->name);
  value.dtype = made[0].dtype;
  value.dims = std::move(made[0].dims);
  value.placement = made[0].placement;
  value.segments = std::move(made[0].segments);
  return value;
}

StatusOr<std::vector<ValueType>> InferQuantize(const MeshView& mesh, const Attributes& attributes,
                                               Inputs in) {
  const auto& quantize = std::get<QuantizeAttributes>(attributes);
  TROUPE_ASSIGN_OR_RETURN(const Value x, ValueOf(mesh, quantize, in));
  TROUPE_RETURN_IF_ERROR(ExpectType(x, DType::kBFloat16, 2));
  if (!IsFloat8(quantize.format) || (!quantize.rows && !quantize.columns)) {
    return InvalidArgument(
        "{} is quantised to {} in {} layouts, must be an FP8 format in at least one layout", x.name,
        Name(quantize.format), quantize.rows + quantize.columns);
  }
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& placement = x.placement.axes[a];
    const bool is_partial = placement.kind == PlacementKind::kPartialSum ||
                            placement.kind == PlacementKind::kPartialMax;
    if (!is_partial && placement.run == 0 && placement.shift == 0) continue;
    return InvalidArgument(
        "input {} is {} on axis {}: only a whole value or a rank's own part can be quantised",
        x.name, ToText(placement), Name(static_cast<Axis>(a)));
  }
  if (in.size() > InputsOf(quantize.source)) {
    const Value& history = *in[InputsOf(quantize.source)];
    TROUPE_RETURN_IF_ERROR(ExpectType(history, DType::kFloat32, 1));
    if (history.dims[0].local != kAmaxSteps || history.placement != Placement() ||
        quantize.block_rows != 0) {
      return InvalidArgument("input {} of {} steps, {}, is not the history of one scale",
                             history.name, history.dims[0].local, ToText(history.placement));
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

StatusOr<std::vector<ValueType>> InferHistory(const MeshView& mesh, const Attributes& attributes,
                                              Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[0], DType::kFloat64, 1));
  const size_t count = (in.size() - 1) / 2;
  if (in.size() != 1 + 2 * count)
    return InvalidArgument("there are {} inputs, must be an odd number", in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const Value& value = *in[i];
    if (value.placement != Placement()) {
      return InvalidArgument("input {} is {}, must be R on every axis: reduce it first", value.name,
                             ToText(value.placement));
    }
    if (i == 0) continue;
    TROUPE_RETURN_IF_ERROR(ExpectType(value, DType::kFloat32, 1));
    const int64_t due = i <= count ? 1 : kAmaxSteps;
    if (value.dims[0].local != due) {
      return InvalidArgument("input {} has {} numbers, must have {}", value.name,
                             value.dims[0].local, due);
    }
  }
  return std::vector<ValueType>{};
}

}  // namespace

OpRules QuantizeRules() { return {.infer = InferQuantize}; }
OpRules AmaxHistoryRules() { return {.infer = InferHistory}; }

}  // namespace troupe::model
