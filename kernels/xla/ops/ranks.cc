#include "kernels/xla/ops/ranks.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "model/program/collective_group.h"

namespace troupe::kernels::xla {
namespace {

model::CollectiveGroup GroupOf(const model::Op& op) {
  if (op.kind == model::OpKind::kControlReduce) return {model::CollectiveGroup::Kind::kAll, 0};
  return model::CollectiveOf(op).group;
}

}  // namespace

int Ranks::IndexOf(const Lowering& rank) {
  const model::CollectiveGroup group = GroupOf(rank.op);
  if (group.kind == model::CollectiveGroup::Kind::kAll) return model::RankNumber(rank.program.mesh);
  return model::IndexInGroup(rank.program.mesh, group);
}

Function::Groups Ranks::Groups() const {
  const std::vector<Lowering>& all = lowerings();
  const model::CollectiveGroup group = GroupOf(all[0].op);
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
    std::ranges::sort(members, {}, [&](int p) { return IndexOf(all[static_cast<size_t>(p)]); });
    groups.push_back(std::move(members));
  }
  return groups;
}

int Ranks::group_size() const {
  const Lowering& any = lowerings()[0];
  return model::GroupSize(any.program.mesh, GroupOf(any.op));
}

bool HasPeers(const Lowering& lowering) {
  return lowering.ranks.size() > 1 && lowering.ranks.group_size() > 1;
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

Shape PaddedShape(const Ranks& ranks, model::ValueId value) {
  Shape largest;
  for (const Lowering& rank : ranks.lowerings()) {
    const Shape own = ShapeOf(rank.program.value(value));
    if (largest.empty()) largest = own;
    for (size_t d = 0; d < own.size(); ++d) largest[d] = std::max(largest[d], own[d]);
  }
  return largest;
}

Tensor PadTo(Function& text, const Tensor& x, const Shape& shape) {
  Tensor padded = x;
  for (size_t d = 0; d < shape.size(); ++d)
    padded = text.Pad(padded, static_cast<int>(d), 0, shape[d] - padded.shape[d]);
  return padded;
}

Tensor CutTo(Function& text, const Tensor& x, const Shape& shape) {
  Tensor cut = x;
  for (size_t d = 0; d < shape.size(); ++d) cut = text.Slice(cut, static_cast<int>(d), 0, shape[d]);
  return cut;
}

}  // namespace troupe::kernels::xla
