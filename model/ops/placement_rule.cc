#include "model/ops/placement_rule.h"

namespace troupe::model {
namespace {

constexpr char kRows = 'r';

// Whether the rule can handle the placement of `operand` along `axis` at all.
Status CheckPlacement(const Operand& operand, const AxisPlacement& placement, const char* axis,
                      std::string_view whole) {
  const std::string& name = operand.value->name;
  if (placement.kind == PlacementKind::kPartialSum ||
      placement.kind == PlacementKind::kPartialMax) {
    return InvalidArgument("input {} is {} on axis {}: reduce it first", name, ToText(placement),
                           axis);
  }
  if (placement.kind != PlacementKind::kShard) return OkStatus();
  if (placement.shift != 0) {
    return InvalidArgument("input {} is {} on axis {}: it belongs to another rank", name,
                           ToText(placement), axis);
  }
  if (placement.run != 0) {
    return InvalidArgument("input {} is {} on axis {}: gather it first", name, ToText(placement),
                           axis);
  }
  if (whole.find(operand.letters[placement.dim]) != std::string_view::npos) {
    return InvalidArgument("input {} is {} on axis {}, but this dim must be whole", name,
                           ToText(placement), axis);
  }
  return OkStatus();
}

}  // namespace

StatusOr<ShardedLetters> ShardedLetters::Of(std::initializer_list<Operand> operands,
                                            std::string_view whole) {
  ShardedLetters result;
  for (const Operand& operand : operands) {
    if (operand.value->dims.size() != operand.letters.size()) {
      return InvalidArgument("input {} has {} dims, must have {}", operand.value->name,
                             operand.value->dims.size(), operand.letters.size());
    }
  }
  for (int a = 1; a < kNumAxes; ++a) {
    TROUPE_ASSIGN_OR_RETURN(const Operand* const by, result.FindLetter(a, operands, whole));
    for (const Operand& operand : operands) {
      if (operand.value->placement.axes[a].kind == PlacementKind::kShard) continue;
      TROUPE_RETURN_IF_ERROR(result.CheckUnsharded(a, operand, by));
    }
  }
  return result;
}

StatusOr<const Operand*> ShardedLetters::FindLetter(int a, std::span<const Operand> operands,
                                                    std::string_view whole) {
  const char* axis = Name(static_cast<Axis>(a));
  const Operand* by = nullptr;
  bool how_is_set = false;
  for (const Operand& operand : operands) {
    const AxisPlacement& placement = operand.value->placement.axes[a];
    TROUPE_RETURN_IF_ERROR(CheckPlacement(operand, placement, axis, whole));
    if (placement.kind != PlacementKind::kShard) continue;
    const char letter = operand.letters[placement.dim];
    if (by != nullptr && letter != letter_[a]) {
      return InvalidArgument("inputs {} and {} are sharded along different dims on axis {}",
                             by->value->name, operand.value->name, axis);
    }
    if (operand.how.has_value() && letter != kRows && *operand.how != placement.how) {
      return InvalidArgument("input {} is {} on axis {}, which shards its dim in the wrong way",
                             operand.value->name, ToText(placement), axis);
    }
    if (!operand.how.has_value() || letter == kRows) {
      if (how_is_set && how_[a] != placement.how) {
        return InvalidArgument("inputs {} and {} are sharded differently on axis {}",
                               by->value->name, operand.value->name, axis);
      }
      how_[a] = placement.how;
      how_is_set = true;
    }
    letter_[a] = letter;
    by = &operand;
  }
  return by;
}

Status ShardedLetters::CheckUnsharded(int a, const Operand& operand, const Operand* by) const {
  const char* axis = Name(static_cast<Axis>(a));
  const AxisPlacement& placement = operand.value->placement.axes[a];
  if (by == nullptr) {
    if (placement.kind != PlacementKind::kCopied) return OkStatus();
    return InvalidArgument("input {} is C on axis {}, along which nothing is sharded",
                           operand.value->name, axis);
  }
  const AxisPlacement& sharded = by->value->placement.axes[a];
  if (operand.letters.find(letter_[a]) != std::string_view::npos) {
    return InvalidArgument("input {} is {} on axis {}, but {} is {}", operand.value->name,
                           ToText(placement), axis, by->value->name, ToText(sharded));
  }
  if (operand.has_gradient && placement.kind != PlacementKind::kCopied) {
    return InvalidArgument("input {} is R on axis {}, along which {} is {}: it must be C (copy)",
                           operand.value->name, axis, by->value->name, ToText(sharded));
  }
  return OkStatus();
}

Placement ShardedLetters::Output(std::string_view letters, std::optional<ShardHow> how) const {
  Placement placement;
  for (int a = 1; a < kNumAxes; ++a) {
    if (letter_[a] == '\0') continue;
    const size_t dim = letters.find(letter_[a]);
    placement.axes[a] =
        dim == std::string_view::npos
            ? PartialSum()
            : Shard(static_cast<int>(dim), letter_[a] == kRows ? how_[a] : how.value_or(how_[a]));
  }
  return placement;
}

uint8_t SelectedAxes(const Value& slots) {
  CollectiveGroup group;
  for (const Axis axis : {Axis::kExpert, Axis::kTensor}) {
    if (slots.placement[axis] == Shard(1, ShardHow::kExperts)) group.axes |= GroupOf(axis).axes;
  }
  return group.axes;
}

StatusOr<Value> Apart(const Value& value, uint8_t axes, AxisPlacement due) {
  Value apart = value;
  for (const Axis axis : {Axis::kExpert, Axis::kTensor}) {
    if (!(axes & GroupOf(axis).axes)) continue;
    if (value.placement[axis] != due) {
      return InvalidArgument("input {} is {} on axis {}, must be {}", value.name,
                             ToText(value.placement[axis]), Name(axis), ToText(due));
    }
    apart.placement[axis] = Replicated();
  }
  return apart;
}

Placement With(Placement placement, uint8_t axes, AxisPlacement on_them) {
  for (const Axis axis : {Axis::kExpert, Axis::kTensor}) {
    if (axes & GroupOf(axis).axes) placement[axis] = on_them;
  }
  return placement;
}

Status ExpectType(const Value& value, DType dtype, size_t dims) {
  if (value.dtype == dtype && value.dims.size() == dims) return OkStatus();
  return InvalidArgument("input {} is {} of {} dims, must be {} of {}", value.name,
                         Name(value.dtype), value.dims.size(), Name(dtype), dims);
}

Status CheckWire(DType wire, ReduceKind reduce, const Value& x) {
  if (wire == DType::kFloat32) return OkStatus();
  if (wire == DType::kBFloat16 && reduce == ReduceKind::kSum && x.dtype == DType::kFloat32) {
    return OkStatus();
  }
  return InvalidArgument("a {} of {} {} cannot be sent as {}",
                         reduce == ReduceKind::kSum ? "sum" : "maximum", Name(x.dtype), x.name,
                         Name(wire));
}

Status ExpectSameExtent(const Value& a, int a_dim, const Value& b, int b_dim) {
  const Dim& x = a.dims[a_dim];
  const Dim& y = b.dims[b_dim];
  if (x.local == y.local && x.global == y.global) return OkStatus();
  return InvalidArgument("dim {} of input {} is {}/{}, but dim {} of {} is {}/{}", a_dim, a.name,
                         x.local, x.global, b_dim, b.name, y.local, y.global);
}

}  // namespace troupe::model
