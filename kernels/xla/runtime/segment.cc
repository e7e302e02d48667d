#include "kernels/xla/runtime/segment.h"

#include <set>

#include "kernels/backend/op_sequence.h"
#include "kernels/xla/runtime/segment_writer.h"

namespace troupe::kernels::xla {
namespace {

using model::Op;
using model::Program;
using model::ValueId;

// The roots that operations [begin, end) of the range's list use.
std::set<ValueId> RootsUsed(const Program& program, const std::vector<Op>& ops, size_t begin,
                            size_t end) {
  std::set<ValueId> roots;
  for (size_t i = begin; i < end; ++i) {
    ForEachValue(program, ops[i], [&](ValueId id) {
      int64_t offset = 0;
      roots.insert(RootOf(program, id, &offset));
    });
  }
  return roots;
}

bool IsTemporary(const model::MemoryPlan& plan, ValueId root) {
  return plan.locations[root].region == model::Region::kTemporary;
}

}  // namespace

StatusOr<SegmentText> WriteSegment(const StagePrograms& stage, const model::MemoryPlan& plan,
                                   const OpRange& range) {
  const Program& program = stage.program(0);
  const std::vector<const std::vector<Op>*> lists = stage.ListsLike(range.ops);
  SegmentWriter writer(stage);
  for (size_t i = range.begin; i < range.end; ++i) {
    const Op& op = range.ops[i];
    if (range.evaluate && op.gradient_in_forward) continue;
    std::vector<const Op*> ops;
    if (op.kind == model::OpKind::kWait) {
      // A collective that the last microbatch only begins runs where it is waited for: until then
      // nothing may change its inputs or read its outputs.
      ops = stage.BegunBy(op);
      if (ops.empty() || !ops[0]->last_microbatch || !stage.IsWithin(*ops[0])) continue;
    } else if (op.last_microbatch && stage.IsWithin(op)) {
      continue;
    } else {
      for (const std::vector<Op>* const list : lists) ops.push_back(&(*list)[i]);
    }
    TROUPE_RETURN_IF_ERROR(writer.Lower(ops));
  }
  const std::set<ValueId> later = RootsUsed(program, range.ops, range.end, range.ops.size());
  return writer.Finish(
      [&](ValueId root) { return !IsTemporary(plan, root) || later.contains(root); });
}

std::vector<ValueId> DeadAfter(const Program& program, const model::MemoryPlan& plan,
                               const OpRange& range) {
  const std::set<ValueId> later = RootsUsed(program, range.ops, range.end, range.ops.size());
  std::vector<ValueId> dead;
  for (const ValueId root : RootsUsed(program, range.ops, range.begin, range.end)) {
    if (IsTemporary(plan, root) && !later.contains(root)) dead.push_back(root);
  }
  return dead;
}

}  // namespace troupe::kernels::xla
