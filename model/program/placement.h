// The placement of a value on the mesh: for every axis but `pipe`, how the ranks along it hold the
// value.
//
//                value across the axis                             its gradient is
//   Shard        each rank holds a slice of one dim                Shard
//   Replicated   identical on all ranks                            Replicated
//   Copied       identical; each rank uses it for its own part     Partial(sum)
//   PartialSum   the true value is the sum over ranks              Copied
//   PartialMax   the true value is the maximum over ranks          none
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

// The mesh from the view of one rank. coordinates[a] < degrees[a].
struct MeshView {
  PerAxis degrees;
  PerAxis coordinates{{0, 0, 0, 0, 0, 0}};
};

enum class PlacementKind : uint8_t { kReplicated, kCopied, kShard, kPartialSum, kPartialMax };

// The division of a sharded dim. kContiguous: contiguous blocks. kHeadTail: a head and a tail chunk
// of every sample (balanced causal context: of a sample's 2n chunks rank i of n has chunks i and 2n
// - 1 - i). kSegments: every segment of a fused tensor (gate|up, q|k|v) separately. kParts: every
// one of several equal parts of the rows separately, so that parts can be sent separately
// (passes/tensor_parts.cc). kExperts: routed rows by the experts that ranks own. Blocks are
// balanced: sizes differ by at most one, the larger first.
enum class ShardHow : uint8_t { kContiguous, kHeadTail, kSegments, kParts, kExperts };

struct AxisPlacement {
  PlacementKind kind = PlacementKind::kReplicated;
  int8_t dim = -1;  // for kShard
  ShardHow how = ShardHow::kContiguous;
  // For kShard: the rank holds the slice of the rank this many places before it on the axis,
  // cyclically.
  int16_t shift = 0;
  // For kShard on an axis that is divided into runs of this many neighbours (0: it is not): the
  // ranks of a run hold the slices, and `across` states how the ranks at one position of their runs
  // hold theirs. With across == kShard each holds a part of the slice, so the value is divided by
  // position in the run first and by run inside that. For heads shared by the ranks of a run, see
  // shared_heads.h.
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

// The ShardHow of rows in `parts` equal parts.
inline ShardHow HowOfParts(int parts) {
  return parts > 1 ? ShardHow::kParts : ShardHow::kContiguous;
}

// The entry of `pipe` is unused and stays Replicated. An axis of degree 1 still has a placement:
// the types of a program do not depend on the degrees.
struct Placement {
  std::array<AxisPlacement, kNumAxes> axes;
  AxisPlacement& operator[](Axis axis) { return axes[static_cast<int>(axis)]; }
  const AxisPlacement& operator[](Axis axis) const { return axes[static_cast<int>(axis)]; }
  bool operator==(const Placement&) const = default;
};

// "data_replicate:S(0) tensor:P(sum)" without Replicated axes; "R" if all are Replicated.
std::string ToText(const Placement& placement);
std::string ToText(const AxisPlacement& placement);  // "S(0,segments)", "S(0,run 2,across C)"

// True if `rows` is a valid placement for rows of a value placed as `whole`: the same placement or,
// if `whole` has parts, that of the rows of one part.
bool IsPlacedAsRowsOf(const Placement& rows, const Placement& whole);

// The placement of a value's gradient, by the table above. PartialMax has no gradient and is
// returned unchanged.
Placement GradientPlacement(const Placement& placement);

// A balanced contiguous division of `extent` into `parts`: [begin, end) of part `index`.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};
Range BalancedRange(int64_t extent, int parts, int index);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_PLACEMENT_H_
