// The ranks that take part in a collective.
#ifndef TROUPE_MODEL_PROGRAM_COLLECTIVE_GROUP_H_
#define TROUPE_MODEL_PROGRAM_COLLECTIVE_GROUP_H_

#include <compare>
#include <cstdint>
#include <string>

#include "model/program/placement.h"

namespace troupe::model {

// The ranks of a collective: an ordered set of axes (one flattened group), the stages that own a tied parameter
// (with this rank's other coordinates), or all ranks.
struct CollectiveGroup {
  enum class Kind : uint8_t { kAxes, kOwners, kAll } kind = Kind::kAxes;
  uint8_t axes = 0;  // bit a set: Axis a takes part
  // Of a group with data_shard, or of tensor alone, where that axis is cut into runs of `run` neighbours (0: it is not):
  // the ranks of one run, or those of one place in their runs.
  enum class Part : uint8_t { kWhole, kWithin, kAcross } part = Part::kWhole;
  int32_t run = 0;
  auto operator<=>(const CollectiveGroup&) const = default;
};
// Ranks of a group; owners are two.
int GroupSize(const MeshView& mesh, const CollectiveGroup& group);
// Which of them this rank is, in group order. REQUIRES: the group is of axes.
int IndexInGroup(const MeshView& mesh, const CollectiveGroup& group);
inline CollectiveGroup GroupOf(Axis axis) { return {CollectiveGroup::Kind::kAxes, static_cast<uint8_t>(1u << static_cast<int>(axis))}; }

// `group` of axes with data_shard, or tensor alone, of one run of that axis or across its runs. REQUIRES: `run` divides its degree.
CollectiveGroup WithinRun(CollectiveGroup group, int run);
CollectiveGroup AcrossRuns(CollectiveGroup group, int run);
// Does the rank at `a` meet that at `b` in such a group? REQUIRES: the group is of axes.
bool AreInOneGroup(const CollectiveGroup& group, const PerAxis& a, const PerAxis& b);

// "data_replicate+data_shard", "data_shard_within_2+expert", "data_shard_across_2", "owners", "all".
std::string ToText(const CollectiveGroup& group);
// The same of a group of axes, those of one rank left out.
std::string AxisText(const PerAxis& degrees, const CollectiveGroup& group);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_COLLECTIVE_GROUP_H_
