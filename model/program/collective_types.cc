#include "model/program/collective_types.h"

#include <algorithm>
#include <span>
#include <variant>

namespace troupe::model {
namespace {

constexpr DType kSummed[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat64};
constexpr DType kCompared[] = {DType::kFloat32};
constexpr DType kMoved[] = {DType::kFloat32, DType::kBFloat16, DType::kInt32};

// The dtypes that a collective accepts; empty for other operations.
std::span<const DType> TypesOf(const Op& op) {
  switch (op.kind) {
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
      return ReduceOf(op) == ReduceKind::kMax ? std::span<const DType>(kCompared)
                                              : std::span<const DType>(kSummed);
    case OpKind::kScatterRouted:
    case OpKind::kControlReduce:
      return kSummed;
    case OpKind::kAllGather:
    case OpKind::kAllToAll:
    case OpKind::kExchangeHeads:
    case OpKind::kGatherRouted:
    case OpKind::kRelayout:
    case OpKind::kShift:
      return kMoved;
    default:
      return {};
  }
}

}  // namespace

Status CheckCollectiveTypes(const Program& program, const Op& op) {
  const std::span<const DType> types = TypesOf(op);
  if (types.empty()) return OkStatus();
  // For routed rows only the first input is sent; the others are counts of rows.
  const bool counted = op.kind == OpKind::kAllToAll || op.kind == OpKind::kGatherRouted ||
                       op.kind == OpKind::kScatterRouted;
  for (const ValueId id : std::span(op.inputs).first(counted ? 1 : op.inputs.size())) {
    const Value& value = program.value(id);
    if (std::ranges::find(types, value.dtype) != types.end()) continue;
    return InvalidArgument("{} of {}, which is {}: values of this type cannot be {}", Name(op.kind),
                           value.name, Name(value.dtype),
                           types.data() == kMoved ? "sent" : "reduced");
  }
  return OkStatus();
}

}  // namespace troupe::model
