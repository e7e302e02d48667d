// kGroupedMatmul, kGroupedMatmulGradInput, kGroupedMatmulGradWeight: one matmul per expert over its
// rows. A bank stores the experts' matrices one below the other, [L·N, K], Shard(0) over expert;
// rows are Shard(0) by expert on that axis. Both are sharded in the same way over tensor if experts
// are spread over it too. On every other axis the letters are those of kMatmul.
#include <algorithm>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

const AxisPlacement kByExpert = Shard(0, ShardHow::kExperts);

// The axes over which experts are spread, derived from the rows' placement.
uint8_t ExpertAxes(const Value& rows) {
  CollectiveGroup group = GroupOf(Axis::kExpert);
  if (rows.placement[Axis::kTensor] == kByExpert) group.axes |= GroupOf(Axis::kTensor).axes;
  return group.axes;
}

Status CheckCounts(const Value& counts, const Value& rows) {
  TROUPE_RETURN_IF_ERROR(ExpectType(counts, DType::kInt32, 1));
  return Apart(counts, ExpertAxes(rows), kByExpert).status();
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& grouped = std::get<GroupedAttributes>(attributes);
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], in[0]->dtype, 2));
  TROUPE_RETURN_IF_ERROR(CheckCounts(*in[2], *in[0]));
  const uint8_t axes = ExpertAxes(*in[0]);
  TROUPE_ASSIGN_OR_RETURN(const Value x, Apart(*in[0], axes, kByExpert));
  TROUPE_ASSIGN_OR_RETURN(const Value w, Apart(*in[1], axes, Shard(0)));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&x, "rk"}, {&w, "nk"}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(x, 1, w, 1));
  const int64_t local = w.dims[0].local / grouped.local_experts;
  const int64_t global = w.dims[0].global / grouped.experts;
  ValueType type = {x.dtype,
                    {x.dims[0], {w.dims[0].name, global, local}},
                    With(letters.Output("rn"), axes, kByExpert),
                    {}};
  if (grouped.gate_up) {
    type.segments = {{"gate", global / 2, local / 2}, {"up", global / 2, local / 2}};
  }
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferGradInput(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  const auto& grouped = std::get<GroupedAttributes>(attributes);
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], in[0]->dtype, 2));
  TROUPE_RETURN_IF_ERROR(CheckCounts(*in[2], *in[0]));
  const uint8_t axes = ExpertAxes(*in[0]);
  TROUPE_ASSIGN_OR_RETURN(const Value dy, Apart(*in[0], axes, kByExpert));
  TROUPE_ASSIGN_OR_RETURN(const Value w, Apart(*in[1], axes, Shard(0)));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rn"}, {&w, "nk"}}));
  if (dy.dims[1].local * grouped.local_experts != w.dims[0].local) {
    return InvalidArgument("input {} has {} columns, but {} experts of {} have {} rows", dy.name,
                           dy.dims[1].local, grouped.local_experts, w.name, w.dims[0].local);
  }
  ValueType type = {
      dy.dtype, {dy.dims[0], w.dims[1]}, With(letters.Output("rk"), axes, kByExpert), {}};
  return std::vector<ValueType>{std::move(type)};
}

StatusOr<std::vector<ValueType>> InferGradWeight(const MeshView& mesh, const Attributes& attributes,
                                                 Inputs in) {
  const auto& grouped = std::get<GroupedAttributes>(attributes);
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], in[0]->dtype, 2));
  TROUPE_RETURN_IF_ERROR(CheckCounts(*in[2], *in[0]));
  const uint8_t axes = ExpertAxes(*in[0]);
  TROUPE_ASSIGN_OR_RETURN(const Value dy, Apart(*in[0], axes, kByExpert));
  TROUPE_ASSIGN_OR_RETURN(const Value x, Apart(*in[1], axes, kByExpert));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rn"}, {&x, "rk"}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, 0, x, 0));
  const Dim rows = {dy.dims[1].name, dy.dims[1].global * grouped.experts,
                    dy.dims[1].local * grouped.local_experts};
  ValueType type = {
      DType::kFloat32, {rows, x.dims[1]}, With(letters.Output("nk"), axes, Shard(0)), {}};
  return std::vector<ValueType>{std::move(type)};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId x = op.inputs[0], w = op.inputs[1], counts = op.inputs[2];
  const ValueId dy = context.GradientOf(op.outputs[0]);
  TROUPE_RETURN_IF_ERROR(
      context.Emit(OpKind::kGroupedMatmulGradInput, op.attributes, {dy, w, counts}, {x}));
  return context.Emit(OpKind::kGroupedMatmulGradWeight, op.attributes, {dy, x, counts}, {w});
}

// 2·K·N for each expected row, independent of the buffers' sizes.
double Flops(const Op& op, const Program& program) {
  const auto& grouped = std::get<GroupedAttributes>(op.attributes);
  const Value &a = program.value(op.inputs[0]), &b = program.value(op.inputs[1]);
  const bool weight = op.kind == OpKind::kGroupedMatmulGradWeight;
  const int64_t other = weight ? b.dims[1].local
                        : op.kind == OpKind::kGroupedMatmul
                            ? b.dims[0].local / grouped.local_experts
                            : b.dims[1].local;
  return 2.0 * static_cast<double>(grouped.expected_rows) * static_cast<double>(a.dims[1].local) *
         static_cast<double>(other);
}

// Tiles of at most this many rows in bfloat16, each as in kMatmulGradWeight.
constexpr int64_t kTileRows = 256;

int64_t Scratch(const Op& op, const Program& program, int threads) {
  const Value &a = program.value(op.inputs[0]), &b = program.value(op.inputs[1]);
  if (a.dtype != DType::kBFloat16) return 0;
  const int64_t rows = std::min(kTileRows, a.dims[0].local);
  return 2 * rows * (a.dims[1].local + b.dims[1].local) * SizeOf(a.dtype);
}

}  // namespace

OpRules GroupedMatmulRules() {
  return {.infer = Infer, .differentiate = Differentiate, .model_flops = Flops};
}
OpRules GroupedMatmulGradInputRules() { return {.infer = InferGradInput, .model_flops = Flops}; }
OpRules GroupedMatmulGradWeightRules() {
  return {.infer = InferGradWeight,
          .model_flops = Flops,
          .scratch_bytes = Scratch,
          .accumulated_output = 0};
}

}  // namespace troupe::model
