// kRouterBias: balancing without a loss. The optimizer's side of a router: experts that got less than
// the mean of a step are chosen a little sooner in the next, and the weights know nothing of it.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[0], DType::kFloat64, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[1], DType::kFloat64, 1));
  TROUPE_RETURN_IF_ERROR(ExpectType(*in[2], DType::kFloat32, 1));
  for (const Value* value : in) {
    if (value->placement == Placement()) continue;
    return InvalidArgument("input {} is {} where R is due on every axis: reduce it first",
                           value->name, ToText(value->placement));
  }
  if (in[1]->dims[0].local != kRouterLanes + in[2]->dims[0].local) {
    return InvalidArgument("input {} has {} lanes where {} has {} experts", in[1]->name,
                           in[1]->dims[0].local, in[2]->name, in[2]->dims[0].local);
  }
  return std::vector<ValueType>{};
}

}  // namespace

OpRules RouterBiasRules() { return {.infer = Infer}; }

}  // namespace troupe::model
