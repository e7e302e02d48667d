// The ranks of a collective.
#ifndef TROUPE_MODEL_PROGRAM_COLLECTIVE_GROUP_H_
#define TROUPE_MODEL_PROGRAM_COLLECTIVE_GROUP_H_

#include <compare>
#include <cstdint>
#include <string>

#include "model/program/placement.h"

namespace troupe::model {

// The ranks of a collective: an ordered set of axes (one flattened group), the stages that own a
// tied parameter (with this rank's other coordinates), or all ranks.
struct CollectiveGroup {
  enum class Kind : uint8_t { kAxes, kOwners, kAll } kind = Kind::kAxes;
  uint8_t axes = 0;  // bit a is set: Axis a takes part
  // For a group with data_shard, or of tensor alone, if that axis is divided into runs of `run`
  // neighbours (0: it is not): the ranks of one run (kWithin), or those at one position in their
  // runs (kAcross).
  enum class Part : uint8_t { kWhole, kWithin, kAcross } part = Part::kWhole;
  int32_t run = 0;
  auto operator<=>(const CollectiveGroup&) const = default;
};
// The number of ranks in a group; there are two owners.
int GroupSize(const MeshView& mesh, const CollectiveGroup& group);
// This rank's index in group order. REQUIRES: the group consists of axes.
int IndexInGroup(const MeshView& mesh, const CollectiveGroup& group);
inline CollectiveGroup GroupOf(Axis axis) {
  return {CollectiveGroup::Kind::kAxes, static_cast<uint8_t>(1u << static_cast<int>(axis))};
}

// The part of `group` within one run of data_shard (or of tensor, if it is the only axis), or
// across its runs. REQUIRES: the group consists of axes and has one of these axes; `run` divides
// its degree.
CollectiveGroup WithinRun(CollectiveGroup group, int run);
CollectiveGroup AcrossRuns(CollectiveGroup group, int run);
// Whether the ranks at `a` and `b` are in the same group. REQUIRES: the group consists of axes.
bool AreInOneGroup(const CollectiveGroup& group, const PerAxis& a, const PerAxis& b);

// "data_replicate+data_shard", "data_shard_within_2+expert", "data_shard_across_2", "owners" or
// "all".
std::string ToText(const CollectiveGroup& group);
// The text of a group of axes, without the axes of degree 1.
std::string AxisText(const PerAxis& degrees, const CollectiveGroup& group);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_COLLECTIVE_GROUP_H_
