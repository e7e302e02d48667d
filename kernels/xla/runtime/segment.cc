#include "kernels/xla/runtime/segment.h"

#include <algorithm>
#include <set>

#include "kernels/xla/runtime/segment_writer.h"
#include "kernels/xla/runtime/small_gathers.h"
#include "kernels/xla/runtime/stage_roots.h"

namespace troupe::kernels::xla {
namespace {

using model::Op;
using model::ValueId;

// Whether nobody reads the root after the list of the range.
bool EndsWithList(const model::MemoryPlan& plan, const OpRange& range, ValueId root) {
  return plan.locations[root].region == model::Region::kTemporary ||
         range.values.inner.contains(root);
}

std::set<ValueId> RootsAfter(const StagePrograms& stage, const OpRange& range) {
  return RootsUsed(stage, range.ops, range.end, range.ops.size());
}

// The operation that is written for `op`; null: none. A collective that the last microbatch only
// begins runs where it is waited for: until then nothing may change its inputs or read its outputs.
const StageOp* WrittenFor(const StagePrograms& stage, const StageOp& op) {
  const Op& any = op.any();
  if (any.kind != model::OpKind::kWait)
    return any.last_microbatch && stage.IsWithin(any) ? nullptr : &op;
  const StageOp* const begun = stage.BegunBy(any);
  if (begun == nullptr || !begun->any().last_microbatch) return nullptr;
  return stage.IsWithin(begun->any()) ? begun : nullptr;
}

}  // namespace

StatusOr<SegmentText> WriteSegment(const StagePrograms& stage, const model::MemoryPlan& plan,
                                   const OpRange& range) {
  SegmentWriter writer(stage, range.values);
  std::set<ValueId> empty;
  const std::set<ValueId> before = RootsUsed(stage, range.ops, 0, range.begin);
  for (const ValueId root : RootsUsed(stage, range.ops, range.begin, range.end)) {
    if (EndsWithList(plan, range, root) && !before.contains(root)) empty.insert(root);
  }
  writer.BeginEmpty(std::move(empty));
  writer.ConvertCopies(RootsUsed(stage, range.ops, range.begin, range.end));
  const std::vector<std::vector<size_t>> gathers =
      FindSmallGathers(stage, range.ops, range.begin, range.end);
  std::set<size_t> gathered;  // with an earlier one
  for (size_t i = range.begin; i < range.end; ++i) {
    if (range.evaluate && range.ops[i].any().gradient_in_forward) continue;
    if (gathered.contains(i)) continue;
    const auto together = std::ranges::find(gathers, i, [](const auto& set) { return set[0]; });
    if (together != gathers.end()) {
      std::vector<const StageOp*> ops;
      for (const size_t index : *together) ops.push_back(&range.ops[index]);
      gathered.insert(together->begin(), together->end());
      // The same blocks in the same order are the same tensor for the compiler, which gathers it
      // once.
      std::ranges::sort(ops, {}, [](const StageOp* op) { return op->any().inputs[0]; });
      TROUPE_RETURN_IF_ERROR(writer.LowerTogether(ops));
      continue;
    }
    const StageOp* const op = WrittenFor(stage, range.ops[i]);
    if (op != nullptr) TROUPE_RETURN_IF_ERROR(writer.Lower(*op));
  }
  const std::set<ValueId> later = RootsAfter(stage, range);
  const auto is_kept = [&](ValueId root) { return !EndsWithList(plan, range, root); };
  return writer.Finish([&](ValueId root) { return is_kept(root) || later.contains(root); },
                       is_kept);
}

std::vector<ValueId> DeadAfter(const StagePrograms& stage, const model::MemoryPlan& plan,
                               const OpRange& range) {
  const std::set<ValueId> later = RootsAfter(stage, range);
  std::vector<ValueId> dead;
  for (const ValueId root : RootsUsed(stage, range.ops, range.begin, range.end)) {
    if (EndsWithList(plan, range, root) && !later.contains(root)) dead.push_back(root);
  }
  return dead;
}

}  // namespace troupe::kernels::xla
