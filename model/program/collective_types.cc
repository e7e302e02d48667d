#include "model/program/collective_types.h"

#include <algorithm>
#include <optional>
#include <span>
#include <variant>

#include "model/program/op_rules.h"

namespace troupe::model {
namespace {

constexpr DType kSummed[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat64};
constexpr DType kCompared[] = {DType::kFloat32};
constexpr DType kMoved[] = {DType::kFloat32, DType::kBFloat16, DType::kInt32};

std::span<const DType> TypesOf(const CollectiveRules& rules, const Op& op) {
  if (!rules.reduces()) return kMoved;
  return ReduceOf(op) == ReduceKind::kMax ? std::span<const DType>(kCompared)
                                          : std::span<const DType>(kSummed);
}

}  // namespace

Status CheckCollectiveTypes(const Program& program, const Op& op) {
  const std::optional<CollectiveRules>& rules = RulesOf(op.kind).collective;
  if (!rules.has_value()) return OkStatus();
  const std::span<const DType> types = TypesOf(*rules, op);
  // For routed rows only the first input is sent; the others are counts of rows.
  const bool counted = std::holds_alternative<RoutedRowsAttributes>(op.attributes);
  for (const ValueId id : std::span(op.inputs).first(counted ? 1 : op.inputs.size())) {
    const Value& value = program.value(id);
    if (std::ranges::find(types, value.dtype) != types.end()) continue;
    return InvalidArgument("{} of {}, which is {}: values of this type cannot be {}", Name(op.kind),
                           value.name, Name(value.dtype), rules->reduces() ? "reduced" : "sent");
  }
  return OkStatus();
}

}  // namespace troupe::model
