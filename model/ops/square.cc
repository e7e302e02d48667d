// kSquare, kSquareGrad: y = x². A Partial(sum) x is rejected, because the square of a sum is not
// the sum of the squares.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const Value& x = *in[0];
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters, ShardedLetters::Of({{&x, "rh"}}));
  return std::vector<ValueType>{{x.dtype, x.dims, letters.Output("rh"), x.segments}};
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const Value &dy = *in[0], &x = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(dy, x.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&dy, "rh"}, {&x, "rh"}}));
  for (const int dim : {0, 1}) TROUPE_RETURN_IF_ERROR(ExpectSameExtent(dy, dim, x, dim));
  return std::vector<ValueType>{{x.dtype, x.dims, letters.Output("rh"), x.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  return context.Emit(OpKind::kSquareGrad, NoAttributes(),
                      {context.GradientOf(op.outputs[0]), op.inputs[0]}, {op.inputs[0]});
}

}  // namespace

OpRules SquareRules() { return {.infer = Infer, .differentiate = Differentiate}; }
OpRules SquareGradRules() { return {.infer = InferGrad}; }

}  // namespace troupe::model
