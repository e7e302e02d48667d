// kMatmul y = x wᵀ, kMatmulGradInput dx = dy w, kMatmulGradWeight dw += dyᵀ x, with x [R,K], w
// [N,K], y [R,N]. In float8 all three compute a bᵀ: both operands store the dimension that is
// summed over along their rows.
#include <string_view>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// INVALID_ARGUMENT unless `scale` has the type of the scales of an FP8 operand.
Status ExpectScale(const MeshView& mesh, const Value& operand, const Value& scale) {
  if (scale.dtype == DType::kFloat32 && !scale.dims.empty() && scale.dims.size() <= 2) {
    const int block_rows = scale.dims.size() == 1 ? 0
                           : scale.dims[0].local == operand.dims[0].local
                               ? 1
                               : static_cast<int>(kFloat8Block);
    const ScaleShape due = ScaleShapeOf(mesh, operand.dims, operand.placement, block_rows);
    if (scale.placement == due.placement && scale.dims[0].local == due.dims[0].local &&
        scale.dims.back().local == due.dims.back().local) {
      return OkStatus();
    }
  }
  return InvalidArgument("input {}, {}, is not a scale of {}, {}", scale.name,
                         ToText(scale.placement), operand.name, ToText(operand.placement));
}

struct Letters {
  std::string_view a, b, result;
};

// The result type of two FP8 operands, with the given `dtype` and segments.
StatusOr<std::vector<ValueType>> InferFloat8(const MeshView& mesh, Inputs in, DType due,
                                             const Letters& letters, DType dtype,
                                             const std::vector<Segment>& segments) {
  const Value &a = *in[0], &b = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(a, due, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(b, DType::kFloat8E4M3, 2));
  if (in.size() != 4)
    return InvalidArgument("FP8 operands {} and {} have no scales", a.name, b.name);
  TROUPE_RETURN_IF_ERROR(ExpectScale(mesh, a, *in[2]));
  TROUPE_RETURN_IF_ERROR(ExpectScale(mesh, b, *in[3]));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters sharded,
                          ShardedLetters::Of({{&a, letters.a}, {&b, letters.b}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(a, 1, b, 1));
  return std::vector<ValueType>{
      {dtype, {a.dims[0], b.dims[0]}, sharded.Output(letters.result), segments}};
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  if (IsFloat8(in[0]->dtype)) {
    return InferFloat8(mesh, in, DType::kFloat8E4M3, {"rk", "nk", "rn"}, DType::kBFloat16,
                       in[1]->segments);
  }
  const Value &x = *in[0], &w = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(w, x.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&x, "rk"}, {&w, "nk"}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(x, 1, w, 1));
  return std::vector<ValueType>{
      {x.dtype, {x.dims[0], w.dims[0]}, letters.Output("rn"), w.segments}};
}

StatusOr<std::vector<ValueType>> InferGradInput(const MeshView& mesh, const Attributes& attributes,
                                                Inputs in) {
  if (IsFloat8(in[0]->dtype)) {
    return InferFloat8(mesh, in, DType::kFloat8E5M2, {"rn", "kn", "rk"}, DType::kBFloat16, {});
  }
  const Value &dy = *in[0], &w = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(w, dy.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rn"}, {&w, "nk"}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, 1, w, 0));
  return std::vector<ValueType>{{dy.dtype, {dy.dims[0], w.dims[1]}, letters.Output("rk"), {}}};
}

StatusOr<std::vector<ValueType>> InferGradWeight(const MeshView& mesh, const Attributes& attributes,
                                                 Inputs in) {
  if (IsFloat8(in[0]->dtype)) {
    return InferFloat8(mesh, in, DType::kFloat8E5M2, {"nr", "kr", "nk"}, DType::kFloat32,
                       in[0]->segments);
  }
  const Value &dy = *in[0], &x = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(x, dy.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rn"}, {&x, "rk"}}));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, 0, x, 0));
  return std::vector<ValueType>{
      {DType::kFloat32, {dy.dims[1], x.dims[1]}, letters.Output("nk"), dy.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const ValueId x = op.inputs[0], w = op.inputs[1], dy = context.GradientOf(op.outputs[0]);
  TROUPE_RETURN_IF_ERROR(context.Emit(OpKind::kMatmulGradInput, NoAttributes(), {dy, w}, {x}));
  return context.Emit(OpKind::kMatmulGradWeight, NoAttributes(), {dy, x}, {w});
}

// 2·R·K·N for all three kinds.
double Flops(const Op& op, const Program& program) {
  const Value &a = program.value(op.inputs[0]), &b = program.value(op.inputs[1]);
  const bool by_rows = op.kind == OpKind::kMatmul || IsFloat8(b.dtype);
  const int64_t third = by_rows ? b.dims[0].local : b.dims[1].local;
  return 2.0 * static_cast<double>(a.elements()) * static_cast<double>(third);
}

// Working memory of the library's bfloat16 weight gradient: packed and transposed operands. With
// oneDNN 2.6 it measures 85% to 99% of twice their bytes for matmuls from [1024, 768] to [1024,
// 50304]. FP8 operands are converted to bfloat16 first.
int64_t Scratch(const Op& op, const Program& program, int threads) {
  const Value &a = program.value(op.inputs[0]), &b = program.value(op.inputs[1]);
  const int64_t bytes = (a.elements() + b.elements()) * SizeOf(DType::kBFloat16);
  const bool widened = IsFloat8(a.dtype);
  if (op.kind != OpKind::kMatmulGradWeight) return widened ? bytes : 0;
  return (a.dtype == DType::kBFloat16 || widened ? 2 * bytes : 0) + (widened ? bytes : 0);
}

}  // namespace

OpRules MatmulRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .model_flops = Flops,
          .scratch_bytes = Scratch};
}
OpRules MatmulGradInputRules() {
  return {.infer = InferGradInput, .model_flops = Flops, .scratch_bytes = Scratch};
}
OpRules MatmulGradWeightRules() {
  return {.infer = InferGradWeight,
          .model_flops = Flops,
          .scratch_bytes = Scratch,
          .accumulated_output = 0};
}

}  // namespace troupe::model
