// kRouterSlots: selects, from the choices of all ranks of a group, those of this rank's experts and
// assigns each a row of its buffer. Used when an all-gather dispatches: every rank has every row
// and works on its own choices only.
#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& router = std::get<RouterAttributes>(attributes);
  const Value &chosen = *in[0], &slots = *in[1];
  TROUPE_RETURN_IF_ERROR(ExpectType(chosen, DType::kInt32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(slots, DType::kInt32, 2));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(chosen, 0, slots, 0));
  TROUPE_RETURN_IF_ERROR(ExpectSameExtent(chosen, 1, slots, 1));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&chosen, "rk", false}, {&slots, "rk", false}}, "k"));
  if (router.first_expert < 0 || router.local_experts < 1 ||
      router.first_expert + router.local_experts > router.experts) {
    return InvalidArgument("experts [{}, {}) are not among {}", router.first_expert,
                           router.first_expert + router.local_experts, router.experts);
  }
  Placement own = letters.Output("rk"), counts = letters.Output("r");
  for (int a = 1; a < kNumAxes; ++a) {
    if (!(router.spread.axes & (1u << a))) continue;
    if (chosen.placement.axes[a] != Replicated()) {
      return InvalidArgument("input {} is {} on axis {}, must be R, all ranks' rows", chosen.name,
                             ToText(chosen.placement.axes[a]), Name(static_cast<Axis>(a)));
    }
    own.axes[a] = Shard(1, ShardHow::kExperts);
    counts.axes[a] = Shard(0, ShardHow::kExperts);
  }
  const int64_t local = router.local_experts;
  return std::vector<ValueType>{
      {DType::kInt32, slots.dims, own, {}},
      {DType::kInt32,
       {{"counts", router.experts * (slots.dims[0].global / slots.dims[0].local), local}},
       counts,
       {}}};
}

}  // namespace

OpRules RouterSlotsRules() { return {.infer = Infer}; }

}  // namespace troupe::model
