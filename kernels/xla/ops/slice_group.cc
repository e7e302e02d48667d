#include "kernels/xla/ops/slice_group.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/xla/ops/ranks.h"
#include "model/program/collective_group.h"

namespace troupe::kernels::xla {
namespace {

model::CollectiveGroup GroupOfOp(const model::Op& op) {
  if (op.kind == model::OpKind::kControlReduce) return {model::CollectiveGroup::Kind::kAll, 0};
  return model::CollectiveOf(op).group;
}

}  // namespace

bool HasPeers(const Lowering& lowering) {
  return lowering.ranks.lowerings().size() > 1 && GroupSizeOf(lowering) > 1;
}

int GroupSizeOf(const Lowering& lowering) {
  return model::GroupSize(lowering.program.mesh, GroupOfOp(lowering.op));
}

int IndexInGroupOf(const Lowering& rank) {
  const model::CollectiveGroup group = GroupOfOp(rank.op);
  if (group.kind == model::CollectiveGroup::Kind::kAll) return model::RankNumber(rank.program.mesh);
  return model::IndexInGroup(rank.program.mesh, group);
}

Function::Groups PartitionGroups(const Lowering& lowering) {
  const std::vector<Lowering>& all = lowering.ranks.lowerings();
  const model::CollectiveGroup group = GroupOfOp(lowering.op);
  const bool is_whole = group.kind == model::CollectiveGroup::Kind::kAll;
  std::vector<bool> listed(all.size());
  Function::Groups groups;
  for (size_t first = 0; first < all.size(); ++first) {
    if (listed[first]) continue;
    std::vector<int> members;
    for (size_t p = first; p < all.size(); ++p) {
      if (!is_whole && !model::AreInOneGroup(group, all[first].program.mesh.coordinates,
                                             all[p].program.mesh.coordinates))
        continue;
      listed[p] = true;
      members.push_back(static_cast<int>(p));
    }
    std::ranges::sort(members, {},
                      [&](int p) { return IndexInGroupOf(all[static_cast<size_t>(p)]); });
    groups.push_back(std::move(members));
  }
  return groups;
}

Status ExpectEqualExtents(const Lowering& lowering) {
  for (const std::vector<model::ValueId>* list : {&lowering.op.inputs, &lowering.op.outputs}) {
    for (const model::ValueId id : *list) {
      const model::Value& value = lowering.program.value(id);
      for (const Lowering& rank : lowering.ranks.lowerings()) {
        const Shape own = ShapeOf(value), other = ShapeOf(rank.program.value(id));
        if (own == other) continue;
        return Unimplemented(
            "the ranks of a slice must have equal extents of {}, but they are [{}] and [{}]",
            value.name, fmt::join(own, ","), fmt::join(other, ","));
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe::kernels::xla
