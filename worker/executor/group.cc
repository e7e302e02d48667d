#include "worker/executor/group.h"

#include <map>

namespace troupe {

using model::Axis;
using model::CollectiveGroup;
using model::CollectivePurpose;

std::vector<int> RanksOfGroup(const GroupMesh& mesh, int rank, const CollectiveGroup& group) {
  constexpr unsigned kAllAxes = (1u << model::kNumAxes) - 1;
  switch (group.kind) {
    case CollectiveGroup::Kind::kAll:
      return mesh.mesh.GroupOf(rank, kAllAxes);
    case CollectiveGroup::Kind::kAxes:
      return mesh.mesh.GroupOf(rank, group);
    case CollectiveGroup::Kind::kOwners:
      break;
  }
  std::vector<int> owners = mesh.mesh.GroupOf(rank, Axis::kPipe);
  std::erase_if(owners, [&mesh](int other) {
    const int stage = mesh.mesh.CoordinatesOf(other)[Axis::kPipe];
    return stage != mesh.first_stage && stage != mesh.last_stage;
  });
  return owners;
}

std::string AxisText(const GroupMesh& mesh, const CollectiveGroup& group) {
  if (group.kind == CollectiveGroup::Kind::kAll) return "all";
  if (group.kind == CollectiveGroup::Kind::kOwners) return "owners";
  return model::AxisText(mesh.mesh.degrees(), group);
}

std::vector<UsedGroup> GroupsOf(const model::Program& program) {
  std::map<CollectiveGroup, UsedGroup> used;
  const auto add = [&used](const std::vector<model::Op>& ops) {
    for (const model::Op& op : ops) {
      if (op.kind == model::OpKind::kCopy) continue;  // moves no data
      if (const auto* attributes = model::FindCollective(op.attributes)) {
        used.emplace(attributes->group, UsedGroup{attributes->group, attributes->purpose});
      }
    }
  };
  for (const auto& pieces : program.ops) {
    for (const auto& ops : pieces) add(ops);
  }
  add(program.update);
  add(program.initialize);
  std::vector<UsedGroup> groups;
  for (const auto& [key, group] : used) groups.push_back(group);
  return groups;
}

}  // namespace troupe
