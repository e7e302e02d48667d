#include "kernels/xla/runtime/stage_programs.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

using model::Axis;
using model::Op;
using model::OpKind;
using model::Program;
using model::Value;
using Group = model::CollectiveGroup;

// Calls `visit` with every list of operations, in an order that all programs share.
template <typename Visit>
void ForEachList(const Program& program, const Visit& visit) {
  for (const auto& chunk : program.ops) {
    for (const std::vector<Op>& piece : chunk) visit(piece);
  }
  visit(program.update);
  visit(program.initialize);
}

std::vector<const std::vector<Op>*> ListsOf(const Program& program) {
  std::vector<const std::vector<Op>*> lists;
  ForEachList(program, [&](const std::vector<Op>& list) { lists.push_back(&list); });
  return lists;
}

// The ranks of a stage are all coordinates but that of the pipe, once each.
Status CheckMeshes(const std::vector<const Program*>& programs) {
  const model::MeshView& first = programs[0]->mesh;
  int ranks = 1;
  for (int a = 0; a < model::kNumAxes; ++a) {
    if (static_cast<Axis>(a) != Axis::kPipe) ranks *= first.degrees.of[a];
  }
  if (programs.size() > 1 && std::ssize(programs) != ranks) {
    return InvalidArgument("a slice has {} programs, but its stage has {} ranks", programs.size(),
                           ranks);
  }
  for (size_t p = 0; p < programs.size(); ++p) {
    const model::MeshView& mesh = programs[p]->mesh;
    if (mesh.degrees.of != first.degrees.of ||
        mesh.coordinates[Axis::kPipe] != first.coordinates[Axis::kPipe]) {
      return InvalidArgument("partitions 0 and {} are not ranks of one stage of one mesh", p);
    }
    for (size_t other = 0; other < p; ++other) {
      if (mesh.coordinates.of == programs[other]->mesh.coordinates.of)
        return InvalidArgument("partitions {} and {} are the same rank", other, p);
    }
  }
  return OkStatus();
}

Status CheckValue(const Value& value, const Value& other, size_t partition) {
  const auto differs = [&](const char* what) {
    return Unimplemented("{} has another {} on partition {} than on partition 0 of the slice",
                         value.name, what, partition);
  };
  if (value.name != other.name) return differs("name");
  if (value.dtype != other.dtype) return differs("dtype");
  if (value.role != other.role) return differs("role");
  if (value.dims.size() != other.dims.size()) return differs("number of dims");
  if (value.view_of != other.view_of) return differs("storage");
  return OkStatus();
}

bool HasGroup(const Op& op) { return model::FindCollective(op.attributes) != nullptr; }

// Inputs may differ where an operation sums what a rank counts (SumOfSquares).
Status CheckOp(const Program& program, const Op& op, const Op& other, size_t partition) {
  const auto differs = [&](const char* what) {
    return Unimplemented("{} has {} on partition {} than on partition 0 of the slice",
                         OperationName(program, op), what, partition);
  };
  if (op.kind != other.kind) return differs("another kind");
  if (op.outputs != other.outputs) return differs("other outputs");
  if (op.kind != OpKind::kSumOfSquares && op.inputs != other.inputs) return differs("other inputs");
  if (op.first_writer != other.first_writer || op.asynchronous != other.asynchronous ||
      op.gradient_in_forward != other.gradient_in_forward ||
      op.last_microbatch != other.last_microbatch) {
    return differs("another place in the step");
  }
  if (HasGroup(op) && model::CollectiveOf(op).group != model::CollectiveOf(other).group)
    return differs("another group");
  return OkStatus();
}

Status CheckProgram(const Program& program, const Program& other, size_t partition) {
  if (program.values.size() != other.values.size() ||
      program.parameters.size() != other.parameters.size()) {
    return Unimplemented(
        "partition {} has {} values and {} parameters, partition 0 of the slice has {} and {}",
        partition, other.values.size(), other.parameters.size(), program.values.size(),
        program.parameters.size());
  }
  for (size_t v = 0; v < program.values.size(); ++v)
    TROUPE_RETURN_IF_ERROR(CheckValue(program.values[v], other.values[v], partition));
  const auto lists = ListsOf(program), others = ListsOf(other);
  if (lists.size() != others.size())
    return Unimplemented("partition {} has other chunks than partition 0 of the slice", partition);
  for (size_t l = 0; l < lists.size(); ++l) {
    if (lists[l]->size() != others[l]->size()) {
      return Unimplemented("a piece has {} operations on partition {} and {} on partition 0",
                           others[l]->size(), partition, lists[l]->size());
    }
    for (size_t i = 0; i < lists[l]->size(); ++i)
      TROUPE_RETURN_IF_ERROR(CheckOp(program, (*lists[l])[i], (*others[l])[i], partition));
  }
  return OkStatus();
}

}  // namespace

StatusOr<StagePrograms> StagePrograms::Make(std::vector<const Program*> programs) {
  TROUPE_RETURN_IF_ERROR(CheckMeshes(programs));
  for (size_t p = 1; p < programs.size(); ++p)
    TROUPE_RETURN_IF_ERROR(CheckProgram(*programs[0], *programs[p], p));
  return StagePrograms(std::move(programs));
}

Shape StagePrograms::StorageShape(model::ValueId value) const {
  Shape largest = ShapeOf(programs_[0]->value(value));
  for (const Program* const program : programs_) {
    const Shape own = ShapeOf(program->value(value));
    for (size_t d = 0; d < own.size(); ++d) largest[d] = std::max(largest[d], own[d]);
  }
  return largest;
}

std::vector<const std::vector<Op>*> StagePrograms::ListsLike(const std::vector<Op>& list) const {
  for (const Program* const program : programs_) {
    const auto lists = ListsOf(*program);
    const auto found = std::ranges::find(lists, &list);
    if (found == lists.end()) continue;
    std::vector<const std::vector<Op>*> all;
    for (const Program* const rank : programs_)
      all.push_back(ListsOf(*rank)[static_cast<size_t>(found - lists.begin())]);
    return all;
  }
  TROUPE_CHECK(false, "the list belongs to none of the slice's programs");
  return {};
}

bool StagePrograms::IsWithin(const Op& op) const {
  if (ranks() == 1) return false;
  const model::MeshView& mesh = programs_[0]->mesh;
  Group group{Group::Kind::kAll, 0};
  if (op.kind != OpKind::kControlReduce) {
    if (!model::RulesOf(op.kind).collective.has_value()) return false;
    group = model::CollectiveOf(op).group;
  }
  const bool one_stage = mesh.degrees[Axis::kPipe] == 1;
  switch (group.kind) {
    case Group::Kind::kOwners:
      return false;
    case Group::Kind::kAll:
      return one_stage;
    case Group::Kind::kAxes:
      break;
  }
  const bool has_pipe = (group.axes & model::GroupOf(Axis::kPipe).axes) != 0;
  return (one_stage || !has_pipe) && model::GroupSize(mesh, group) > 1;
}

std::vector<const Op*> StagePrograms::BegunBy(const Op& wait) const {
  std::vector<const Op*> begun;
  for (const Program* const program : programs_) {
    for (const std::vector<Op>* const list : ListsOf(*program)) {
      const auto begins = [&](const Op& op) {
        return op.asynchronous && !op.outputs.empty() && op.outputs[0] == wait.inputs[0];
      };
      const auto found = std::ranges::find_if(*list, begins);
      if (found == list->end()) continue;
      begun.push_back(&*found);
      break;
    }
  }
  return begun;
}

}  // namespace troupe::kernels::xla
