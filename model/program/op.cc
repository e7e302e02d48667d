#include "model/program/op.h"

#include <type_traits>

#include "base/check.h"

namespace troupe::model {

const char* Name(OpKind kind) {
  static constexpr const char* kNames[] = {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) #name,
#include "model/program/op_kinds.def"
  };
  return kNames[static_cast<int>(kind)];
}

const char* WhyNotOnXla(OpKind kind) {
  switch (kind) {
#define TROUPE_NO_XLA(Kind, reason) \
  case OpKind::k##Kind:             \
    return reason;
#include "model/program/op_kinds.def"
    default:
      return nullptr;
  }
}

bool AreAttributesOf(OpKind kind, const Attributes& attributes) {
  switch (kind) {
#define TROUPE_OP(Kind, name, type, cpu, cuda) \
  case OpKind::k##Kind:                        \
    return std::holds_alternative<type##Attributes>(attributes);
#include "model/program/op_kinds.def"
  }
  return false;
}

bool IsCollective(OpKind kind) {
  static constexpr bool kIsCollective[] = {
#define TROUPE_OP(Kind, name, type, cpu, cuda) \
  std::is_base_of_v<CollectiveAttributes, type##Attributes>,
#include "model/program/op_kinds.def"
  };
  return kIsCollective[static_cast<int>(kind)];
}

const CollectiveAttributes* FindCollective(const Attributes& attributes) {
  return std::visit(
      [](const auto& of_kind) -> const CollectiveAttributes* {
        if constexpr (std::is_base_of_v<CollectiveAttributes, std::decay_t<decltype(of_kind)>>) {
          return &of_kind;
        } else {
          return nullptr;
        }
      },
      attributes);
}

const AttentionAttributes* FindAttention(const Attributes& attributes) {
  if (const auto* const part = std::get_if<PartAttributes>(&attributes)) return &part->attention;
  return std::get_if<AttentionAttributes>(&attributes);
}

const CollectiveAttributes& CollectiveOf(const Op& op) {
  const CollectiveAttributes* const collective = FindCollective(op.attributes);
  TROUPE_CHECK(collective != nullptr, "{} has no group", Name(op.kind));
  return *collective;
}

ReduceKind ReduceOf(const Op& op) {
  const auto* const sum = std::get_if<AllReduceAttributes>(&op.attributes);
  return sum == nullptr ? ReduceKind::kSum : sum->reduce;
}

DType WireOf(const Op& op) {
  if (const auto* const sum = std::get_if<AllReduceAttributes>(&op.attributes)) return sum->wire;
  const auto* const scatter = std::get_if<ReduceScatterAttributes>(&op.attributes);
  return scatter == nullptr ? DType::kFloat32 : scatter->wire;
}

int RowPartsOf(const Op& op) {
  if (const auto* const gather = std::get_if<AllGatherAttributes>(&op.attributes)) {
    return gather->row_parts;
  }
  const auto* const scatter = std::get_if<ReduceScatterAttributes>(&op.attributes);
  return scatter == nullptr ? 1 : scatter->row_parts;
}

}  // namespace troupe::model
