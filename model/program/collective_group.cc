#include "model/program/collective_group.h"

namespace troupe::model {
namespace {

// The axis that is divided into runs.
int RunAxis(const CollectiveGroup& group) {
  const bool of_shards = group.axes & GroupOf(Axis::kDataShard).axes;
  return static_cast<int>(of_shards ? Axis::kDataShard : Axis::kTensor);
}

// The number of ranks of a group along axis `a`, and this rank's index among them.
int SizeOn(const CollectiveGroup& group, int a, int degree) {
  if (a != RunAxis(group) || group.part == CollectiveGroup::Part::kWhole) return degree;
  return group.part == CollectiveGroup::Part::kWithin ? group.run : degree / group.run;
}
int PlaceOn(const CollectiveGroup& group, int a, int coordinate) {
  if (a != RunAxis(group) || group.part == CollectiveGroup::Part::kWhole) return coordinate;
  return group.part == CollectiveGroup::Part::kWithin ? coordinate % group.run
                                                      : coordinate / group.run;
}

}  // namespace

int GroupSize(const MeshView& mesh, const CollectiveGroup& group) {
  if (group.kind == CollectiveGroup::Kind::kOwners) return mesh.degrees[Axis::kPipe] > 1 ? 2 : 1;
  int size = 1;
  for (int a = 0; a < kNumAxes; ++a) {
    if (group.kind == CollectiveGroup::Kind::kAll || (group.axes & (1u << a)))
      size *= SizeOn(group, a, mesh.degrees.of[a]);
  }
  return size;
}

int IndexInGroup(const MeshView& mesh, const CollectiveGroup& group) {
  int index = 0;
  for (int a = 0; a < kNumAxes; ++a) {
    if (!(group.axes & (1u << a))) continue;
    index =
        index * SizeOn(group, a, mesh.degrees.of[a]) + PlaceOn(group, a, mesh.coordinates.of[a]);
  }
  return index;
}

CollectiveGroup WithinRun(CollectiveGroup group, int run) {
  group.part = CollectiveGroup::Part::kWithin;
  group.run = run;
  return group;
}

CollectiveGroup AcrossRuns(CollectiveGroup group, int run) {
  group.part = CollectiveGroup::Part::kAcross;
  group.run = run;
  return group;
}

bool AreInOneGroup(const CollectiveGroup& group, const PerAxis& a, const PerAxis& b) {
  for (int axis = 0; axis < kNumAxes; ++axis) {
    const int x = a.of[axis], y = b.of[axis];
    if (!(group.axes & (1u << axis))) {
      if (x != y) return false;
    } else if (axis == RunAxis(group) && group.part == CollectiveGroup::Part::kWithin) {
      if (x / group.run != y / group.run) return false;
    } else if (axis == RunAxis(group) && group.part == CollectiveGroup::Part::kAcross) {
      if (x % group.run != y % group.run) return false;
    }
  }
  return true;
}

std::string ToText(const CollectiveGroup& group) {
  if (group.kind == CollectiveGroup::Kind::kAll) return "all";
  if (group.kind == CollectiveGroup::Kind::kOwners) return "owners";
  // The text with all axes.
  return AxisText(PerAxis{{2, 2, 2, 2, 2, 2}}, group);
}

std::string AxisText(const PerAxis& degrees, const CollectiveGroup& group) {
  std::string text;
  for (int a = 0; a < kNumAxes; ++a) {
    if (!(group.axes & (1u << a)) || degrees.of[a] == 1) continue;
    if (!text.empty()) text += '+';
    text += Name(static_cast<Axis>(a));
    if (a != RunAxis(group) || group.part == CollectiveGroup::Part::kWhole) continue;
    text += group.part == CollectiveGroup::Part::kWithin ? "_within_" : "_across_";
    text += std::to_string(group.run);
  }
  return text;
}

}  // namespace troupe::model
