// kRouterBias: load balancing without a loss, run in Update. The bias of experts that received
// fewer choices than the mean of a step increases, so they are chosen more often in the next step;
// the bias does not affect the weights.
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
    return InvalidArgument("input {} is {}, must be R on every axis: reduce it first", value->name,
                           ToText(value->placement));
  }
  if (in[1]->dims[0].local != kRouterLanes + in[2]->dims[0].local) {
    return InvalidArgument("input {} has {} lanes, but {} has {} experts", in[1]->name,
                           in[1]->dims[0].local, in[2]->name, in[2]->dims[0].local);
  }
  return std::vector<ValueType>{};
}

}  // namespace

OpRules RouterBiasRules() { return {.infer = Infer}; }

}  // namespace troupe::model
