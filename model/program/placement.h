// Where a value lives on the mesh: for every axis but `pipe`, how the ranks along it hold the value.
//
//                value across the axis                                its gradient is
//   Shard        each rank holds a slice of one dim                   Shard
//   Replicated   equal on all                                         Replicated
//   Copied       equal on all; each rank uses it for its own part     Partial(sum)
//   PartialSum   the true value is the sum over ranks                 Copied
//   PartialMax   the true value is the maximum over ranks             none
//
// (JAX's reduced/unreduced and Megatron's f/g pair are the same duality.)
#ifndef TROUPE_MODEL_PROGRAM_PLACEMENT_H_
#define TROUPE_MODEL_PROGRAM_PLACEMENT_H_

#include <array>
#include <cstdint>
#include <string>

namespace troupe::model {

// Mesh axes, outermost (slowest in the rank number) first.
enum class Axis : uint8_t { kPipe, kDataReplicate, kDataShard, kContext, kExpert, kTensor };
inline constexpr int kNumAxes = 6;
const char* Name(Axis axis);  // "pipe", "data_replicate", …

// A value for each axis, such as degrees or coordinates.
struct PerAxis {
  std::array<int32_t, kNumAxes> of = {1, 1, 1, 1, 1, 1};
  int32_t& operator[](Axis axis) { return of[static_cast<int>(axis)]; }
  int32_t operator[](Axis axis) const { return of[static_cast<int>(axis)]; }
};

// The mesh as one rank sees it. coordinates[a] < degrees[a].
struct MeshView {
  PerAxis degrees;
  PerAxis coordinates{{0, 0, 0, 0, 0, 0}};
};

enum class PlacementKind : uint8_t { kReplicated, kCopied, kShard, kPartialSum, kPartialMax };

// How a sharded dim is cut: contiguous blocks, a head and a tail chunk each of every sample (balanced causal context: of
// a sample's 2n chunks rank i of n has chunks i and 2n - 1 - i), or every
// segment of a fused tensor (gate|up, q|k|v) by itself; or every one of several equal parts of the rows by itself, so
// that parts can travel apart (passes/tensor_parts.cc); or, of routed rows, by the experts that ranks own. Blocks are
// balanced: sizes differ by at most one, the larger first.
enum class ShardHow : uint8_t { kContiguous, kHeadTail, kSegments, kParts, kExperts };

struct AxisPlacement {
  PlacementKind kind = PlacementKind::kReplicated;
  int8_t dim = -1;  // of kShard
  ShardHow how = ShardHow::kContiguous;
  // Of kShard: the rank holds the slice of the one that many places before it on the axis, cyclically.
  int16_t shift = 0;
  // Of kShard on an axis that is cut into runs of so many neighbours (0: it is not): the ranks of a run hold the slices,
  // and `across` says how those of one place in their runs hold theirs. kShard: each a part of it, so that the value is
  // cut by place in the run first and by run inside that. Heads that a run's ranks hold alike: shared_heads.h.
  int32_t run = 0;
  PlacementKind across = PlacementKind::kReplicated;
  bool operator==(const AxisPlacement&) const = default;
};

inline AxisPlacement Replicated() { return {}; }
inline AxisPlacement Copied() { return {PlacementKind::kCopied}; }
inline AxisPlacement PartialSum() { return {PlacementKind::kPartialSum}; }
inline AxisPlacement PartialMax() { return {PlacementKind::kPartialMax}; }
inline AxisPlacement Shard(int dim, ShardHow how = ShardHow::kContiguous) {
  return {PlacementKind::kShard, static_cast<int8_t>(dim), how};
}
inline AxisPlacement ShardInRuns(int dim, int run, PlacementKind across) {
  return {PlacementKind::kShard, static_cast<int8_t>(dim), ShardHow::kContiguous, 0, run, across};
}

// Of rows in so many equal parts.
inline ShardHow HowOfParts(int parts) { return parts > 1 ? ShardHow::kParts : ShardHow::kContiguous; }

// The entry of `pipe` is not used and stays Replicated. An axis of degree 1 still carries its placement: a program's
// types do not depend on the degrees.
struct Placement {
  std::array<AxisPlacement, kNumAxes> axes;
  AxisPlacement& operator[](Axis axis) { return axes[static_cast<int>(axis)]; }
  const AxisPlacement& operator[](Axis axis) const { return axes[static_cast<int>(axis)]; }
  bool operator==(const Placement&) const = default;
};

// "data_replicate:S(0) tensor:P(sum)"; Replicated axes are left out, "R" if all are.
std::string ToText(const Placement& placement);
std::string ToText(const AxisPlacement& placement);  // "S(0,segments)", "S(0,run 2,across C)"

// True if rows of a value placed as `whole` are placed as `rows`: alike, or where `whole` has parts as those of one part
// are.
bool IsPlacedAsRowsOf(const Placement& rows, const Placement& whole);

// The placement of a value's gradient, by the table above. PartialMax, which has none, stays.
Placement GradientPlacement(const Placement& placement);

// Balanced contiguous cut of `extent` over `parts`: [begin, end) of part `index`.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
Range BalancedRange(int64_t extent, int parts, int index);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_PLACEMENT_H_
