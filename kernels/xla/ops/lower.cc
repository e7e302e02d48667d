#include "kernels/xla/ops/lower.h"

#include <vector>

#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/slice_group.h"
#include "model/program/op_rules.h"

namespace troupe::kernels::xla {
namespace {

// The kinds whose lowering is for all ranks at once: collectives, and those that are divided into
// parts, so that a difference between ranks makes branches of a part only.
bool IsForAllRanks(const Lowering& any) {
  if (model::UpdatesParameters(any.op) || any.op.kind == model::OpKind::kSumOfSquares) return true;
  const bool is_collective = any.op.kind == model::OpKind::kControlReduce ||
                             model::RulesOf(any.op.kind).collective.has_value();
  return is_collective && HasPeers(any);
}

Status LowerKind(const Lowering& lowering) {
  switch (lowering.op.kind) {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) \
  case model::OpKind::k##Kind:                       \
    return Kind(lowering);
#include "model/program/op_kinds.def"
  }
  return Internal("operation kind {} is unknown", static_cast<int>(lowering.op.kind));
}

}  // namespace

Status Lower(Ranks& ranks) {
  const Lowering& any = ranks.lowerings()[0];
  for (const std::vector<model::ValueId>* list : {&any.op.inputs, &any.op.outputs}) {
    for (const model::ValueId id : *list) {
      if (model::IsFloat8(any.program.value(id).dtype))
        return Unimplemented("{} in float8 is not lowered to XLA", Name(any.op.kind));
    }
  }
  if (IsForAllRanks(any)) return LowerKind(any);
  Status status;
  ranks.EachWrites([&](const Lowering& rank) {
    if (rank.runs) status.Update(LowerKind(rank));
  });
  return status;
}

}  // namespace troupe::kernels::xla
