#include "kernels/xla/runtime/small_gathers.h"

#include <set>

#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/runtime/stage_roots.h"
#include "model/program/collective_group.h"
#include "model/program/op_rules.h"

namespace troupe::kernels::xla {
namespace {

using model::Op;
using model::Program;
using model::ValueId;

// The whole tensors of a set wait in memory for their readers.
constexpr int64_t kSmallBlockBytes = 64 << 10, kMostBytesOfSet = 4 << 20;

ValueId Root(const Program& program, ValueId id) {
  int64_t offset = 0;
  return RootOf(program, id, &offset);
}

bool IsSmallGather(const StagePrograms& stage, const StageOp& op) {
  const Op& any = op.any();
  if (any.kind != model::OpKind::kAllGather || any.last_microbatch || any.outputs.size() != 1 ||
      !stage.IsWithin(any))
    return false;
  const Program& program = stage.program(0);
  const model::Value& block = program.value(any.inputs[0]);
  const int64_t ranks = GroupSize(program.mesh, model::CollectiveOf(any).group);
  for (int p = 0; p < stage.ranks(); ++p) {
    const Op* const own = op.of_rank[p];
    if (own == nullptr) return false;
    const model::Value& input = stage.program(p).value(own->inputs[0]);
    const model::Value& output = stage.program(p).value(own->outputs[0]);
    if (ShapeOf(input) != ShapeOf(block) || output.elements() != block.elements() * ranks)
      return false;
  }
  return block.elements() > 0 && block.bytes() <= kSmallBlockBytes;
}

// The set that is being collected.
class Gathers {
 public:
  explicit Gathers(const Program& program) : program_(&program) {}

  // Whether the all-gather may run with the first of the set.
  bool Takes(const Op& op) const {
    if (first_ == nullptr) return true;
    const ValueId input = Root(*program_, op.inputs[0]), output = Root(*program_, op.outputs[0]);
    return model::CollectiveOf(op).group == model::CollectiveOf(*first_).group &&
           program_->value(op.inputs[0]).dtype == program_->value(first_->inputs[0]).dtype &&
           output_bytes_ + program_->value(op.outputs[0]).bytes() <= kMostBytesOfSet &&
           !inputs_.contains(input) && !written_.contains(input) && !used_.contains(output);
  }
  void Add(const Op& op, size_t index) {
    if (first_ == nullptr) first_ = &op;
    inputs_.insert(Root(*program_, op.inputs[0]));
    output_bytes_ += program_->value(op.outputs[0]).bytes();
    indices.push_back(index);
  }
  // An operation that runs after the first one of the set.
  void Pass(const Op& op) {
    if (first_ == nullptr) return;
    ForEachValue(op, [&](ValueId id) { used_.insert(Root(*program_, id)); });
    // A wait writes what its collective has among its outputs, which are inputs of the wait.
    if (op.kind == model::OpKind::kWait) {
      for (const ValueId id : op.inputs) written_.insert(Root(*program_, id));
    }
    for (const ValueId id : op.outputs) written_.insert(Root(*program_, id));
    if (!model::UpdatesParameters(op)) return;
    written_.insert(used_.begin(), used_.end());
  }

  std::vector<size_t> indices;

 private:
  const Program* program_;
  const Op* first_ = nullptr;
  int64_t output_bytes_ = 0;
  std::set<ValueId> inputs_, written_, used_;
};

}  // namespace

std::vector<std::vector<size_t>> FindSmallGathers(const StagePrograms& stage, const StageOps& ops,
                                                  size_t begin, size_t end) {
  std::vector<std::vector<size_t>> sets;
  Gathers open(stage.program(0));
  const auto close = [&] {
    if (open.indices.size() > 1) sets.push_back(open.indices);
    open = Gathers(stage.program(0));
  };
  for (size_t i = begin; i < end; ++i) {
    const Op& op = ops[i].any();
    if (IsSmallGather(stage, ops[i])) {
      if (!open.Takes(op)) close();
      open.Add(op, i);
    }
    open.Pass(op);
  }
  close();
  return sets;
}

}  // namespace troupe::kernels::xla
