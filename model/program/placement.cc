#include "model/program/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace troupe::model {

const char* Name(Axis axis) {
  static constexpr const char* kNames[kNumAxes] = {"pipe",    "data_replicate", "data_shard",
                                                   "context", "expert",         "tensor"};
  return kNames[static_cast<int>(axis)];
}

namespace {

const char* ToText(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::kReplicated:
      return "R";
    case PlacementKind::kCopied:
      return "C";
    case PlacementKind::kPartialSum:
      return "P(sum)";
    case PlacementKind::kPartialMax:
      return "P(max)";
    case PlacementKind::kShard:
      break;
  }
  return "S";
}

PlacementKind OfGradient(PlacementKind kind) {
  if (kind == PlacementKind::kCopied) return PlacementKind::kPartialSum;
  if (kind == PlacementKind::kPartialSum) return PlacementKind::kCopied;
  return kind;
}

}  // namespace

std::string ToText(const AxisPlacement& placement) {
  if (placement.kind != PlacementKind::kShard) return ToText(placement.kind);
  const char* how = placement.how == ShardHow::kContiguous ? ""
                    : placement.how == ShardHow::kHeadTail ? ",head_tail"
                    : placement.how == ShardHow::kSegments ? ",segments"
                    : placement.how == ShardHow::kParts    ? ",parts"
                                                           : ",experts";
  const std::string shift =
      placement.shift == 0 ? "" : fmt::format(",shift {}", static_cast<int>(placement.shift));
  const std::string run =
      placement.run == 0 ? ""
                         : fmt::format(",run {},{} {}", placement.run,
                                       placement.how == ShardHow::kSegments ? "within" : "across",
                                       ToText(placement.across));
  return fmt::format("S({}{}{}{})", static_cast<int>(placement.dim), how, shift, run);
}

std::string ToText(const Placement& placement) {
  std::string text;
  for (int a = 0; a < kNumAxes; ++a) {
    if (placement.axes[a] == Replicated()) continue;
    if (!text.empty()) text += ' ';
    text += fmt::format("{}:{}", Name(static_cast<Axis>(a)), ToText(placement.axes[a]));
  }
  return text.empty() ? "R" : text;
}

bool IsPlacedAsRowsOf(const Placement& rows, const Placement& whole) {
  for (int a = 0; a < kNumAxes; ++a) {
    const AxisPlacement& of_whole = whole.axes[a];
    const bool is_part = of_whole == Shard(0, ShardHow::kParts) && rows.axes[a] == Shard(0);
    if (rows.axes[a] != of_whole && !is_part) return false;
  }
  return true;
}

Placement GradientPlacement(const Placement& placement) {
  Placement gradient = placement;
  for (AxisPlacement& axis : gradient.axes) {
    axis.kind = OfGradient(axis.kind);
    axis.across = OfGradient(axis.across);
  }
  return gradient;
}

Range BalancedRange(int64_t extent, int parts, int index) {
  TROUPE_CHECK(extent >= 0 && parts > 0 && index >= 0 && index < parts, "extent {}, part {} of {}",
               extent, index, parts);
  const int64_t size = extent / parts, larger = extent % parts;
  const int64_t begin = index * size + std::min<int64_t>(index, larger);
  return {begin, begin + size + (index < larger ? 1 : 0)};
}

}  // namespace troupe::model
