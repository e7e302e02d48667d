// kRouterLoad: the contribution of this rank's rows to each sample's choices of every expert and to
// its sum of weights. If tokens of a sample are on several ranks (context, sequence parallelism),
// these are partial sums; auxiliary losses need the full sums.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& router = std::get<RouterAttributes>(attributes);
  const Value &choices = *in[0], &weights = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(choices, DType::kInt32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(weights, DType::kFloat32, 1));
  // The weights cover all rows of the tensor ranks, while each rank may have only its slice of the
  // rows.
  Value own = weights;
  own.placement[Axis::kTensor] = choices.placement[Axis::kTensor];
  TROUPE_RETURN_IF_ERROR(
      ShardedLetters::Of({{&choices, "rk", false}, {&own, "r", false}}, "k").status());
  const int64_t rows = choices.dims[0].local, all = weights.dims[0].local;
  if (router.local_tokens < 1 || all % router.local_tokens != 0 || router.first_row < 0 ||
      router.first_row + rows > all) {
    return InvalidArgument("rows [{}, {}) of input {} are not among the {} of {}, {} a sample",
                           router.first_row, router.first_row + rows, choices.name, all,
                           weights.name, router.local_tokens);
  }
  const int64_t samples = all / router.local_tokens;
  const int64_t lanes = router.experts + 1;
  return std::vector<ValueType>{
      {DType::kFloat32,
       {{"samples", samples * (weights.dims[0].global / all), samples}, {"load", lanes, lanes}},
       LoadPlacement(choices.placement),
       {}}};
}

}  // namespace

Placement LoadPlacement(const Placement& rows) {
  Placement placement;
  for (int a = 1; a < kNumAxes; ++a) {
    if (rows.axes[a].kind != PlacementKind::kShard) continue;
    // These axes split samples; the others have whole samples.
    const bool cuts = a == static_cast<int>(Axis::kContext) || a == static_cast<int>(Axis::kTensor);
    placement.axes[a] = cuts ? PartialSum() : Shard(0);
  }
  return placement;
}

OpRules RouterLoadRules() { return {.infer = Infer}; }

}  // namespace troupe::model
