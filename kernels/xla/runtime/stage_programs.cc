#include "kernels/xla/runtime/stage_programs.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <variant>

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

// The lists of a program, in an order that all programs share.
std::vector<const std::vector<Op>*> ListsOf(const Program& program) {
  std::vector<const std::vector<Op>*> lists;
  for (const auto& chunk : program.ops) {
    for (const std::vector<Op>& piece : chunk) lists.push_back(&piece);
  }
  lists.push_back(&program.update);
  lists.push_back(&program.initialize);
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

// Returns words for what two ranks state otherwise about a collective, of which there is one text;
// null: nothing.
const char* Difference(const model::CollectiveAttributes&, const model::CollectiveAttributes&) {
  return nullptr;
}

const char* Difference(const model::AllReduceAttributes& a, const model::AllReduceAttributes& b) {
  if (a.reduce != b.reduce) return "another reduction";
  return a.wire != b.wire ? "terms of another dtype" : nullptr;
}

const char* Difference(const model::ReduceScatterAttributes& a,
                       const model::ReduceScatterAttributes& b) {
  if (a.cut != b.cut || a.row_parts != b.row_parts) return "another division of its rows";
  return a.wire != b.wire ? "terms of another dtype" : nullptr;
}

const char* Difference(const model::AllGatherAttributes& a, const model::AllGatherAttributes& b) {
  return a.cut != b.cut || a.row_parts != b.row_parts ? "another division of its rows" : nullptr;
}

const char* Difference(const model::ExchangeHeadsAttributes& a,
                       const model::ExchangeHeadsAttributes& b) {
  return a.samples != b.samples || a.head_dim != b.head_dim || a.to_rows != b.to_rows
             ? "another exchange of heads"
             : nullptr;
}

const char* Difference(const model::RelayoutAttributes& a, const model::RelayoutAttributes& b) {
  return a.samples != b.samples || a.to_head_tail != b.to_head_tail ? "another order of rows"
                                                                    : nullptr;
}

const char* Difference(const model::ShiftAttributes& a, const model::ShiftAttributes& b) {
  return a.shift != b.shift ? "another number of places" : nullptr;
}

// The same for any attributes.
const char* DifferenceOf(const model::Attributes& attributes, const model::Attributes& other) {
  if (attributes.index() != other.index()) return "attributes of another kind";
  return std::visit(
      [&]<typename T>(const T& own) -> const char* {
        if constexpr (std::is_base_of_v<model::CollectiveAttributes, T>) {
          const T& of_other = std::get<T>(other);
          return own.group != of_other.group ? "another group" : Difference(own, of_other);
        }
        return nullptr;
      },
      attributes);
}

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
  const char* const difference = DifferenceOf(op.attributes, other.attributes);
  return difference == nullptr ? OkStatus() : differs(difference);
}

Status CheckProgram(const Program& program, const Program& other, size_t partition) {
  if (program.values.size() != other.values.size() ||
      program.parameters.size() != other.parameters.size() ||
      program.ops.size() != other.ops.size()) {
    return Unimplemented(
        "partition {} has {} values, {} parameters and {} chunks, partition 0 of the slice has {}, "
        "{} and {}",
        partition, other.values.size(), other.parameters.size(), other.ops.size(),
        program.values.size(), program.parameters.size(), program.ops.size());
  }
  for (size_t v = 0; v < program.values.size(); ++v)
    TROUPE_RETURN_IF_ERROR(CheckValue(program.values[v], other.values[v], partition));
  return OkStatus();
}

bool IsSameOp(const Op& a, const Op& b) { return a.kind == b.kind && a.outputs == b.outputs; }

// The operations of all ranks in one order, which is that of each rank's. The next one is one that
// every rank has next or not at all.
StatusOr<StageOps> Merge(const std::vector<const Program*>& programs, size_t list) {
  std::vector<std::span<const Op>> rest;
  for (const Program* const program : programs) rest.emplace_back(*ListsOf(*program)[list]);
  StageOps merged;
  const auto is_next = [&](const Op& op) {
    return std::ranges::all_of(rest, [&](const std::span<const Op>& ops) {
      const auto found = std::ranges::find_if(ops, [&](const Op& o) { return IsSameOp(o, op); });
      return found == ops.begin() || found == ops.end();
    });
  };
  while (true) {
    const auto from = std::ranges::find_if(
        rest, [&](const std::span<const Op>& ops) { return !ops.empty() && is_next(ops[0]); });
    if (from == rest.end()) break;
    StageOp& op = merged.emplace_back();
    const Op& next = from->front();
    for (std::span<const Op>& ops : rest) {
      const bool has = !ops.empty() && IsSameOp(ops[0], next);
      op.of_rank.push_back(has ? &ops[0] : nullptr);
      if (has) ops = ops.subspan(1);
    }
  }
  for (size_t p = 0; p < rest.size(); ++p) {
    if (rest[p].empty()) continue;
    return Unimplemented(
        "{} of partition {} comes in another order on the other ranks of the slice",
        OperationName(*programs[p], rest[p][0]), p);
  }
  return merged;
}

// Ranks of a slice store equal blocks: the whole on each would be another memory plan.
Status CheckCut(const Program& program, const Op& op) {
  const auto* const gather = std::get_if<model::AllGatherAttributes>(&op.attributes);
  const auto* const scatter = std::get_if<model::ReduceScatterAttributes>(&op.attributes);
  const int owner = gather != nullptr    ? gather->cut.owner
                    : scatter != nullptr ? scatter->cut.owner
                                         : -1;
  if (owner < 0) return OkStatus();
  return Unimplemented(
      "{} has all rows on rank {} of its group (shard_whole_matrices), but the ranks of a slice "
      "must have blocks of about equal size",
      OperationName(program, op), owner);
}

// `is_of_rank`: the operations are of the rank, not of a piece.
Status CheckOps(const std::vector<const Program*>& programs, const StageOps& ops, bool is_of_rank) {
  for (const StageOp& op : ops) {
    const Op& any = op.any();
    if (programs.size() > 1) TROUPE_RETURN_IF_ERROR(CheckCut(*programs[0], any));
    for (size_t p = 0; p < op.of_rank.size(); ++p) {
      if (op.of_rank[p] != nullptr) {
        TROUPE_RETURN_IF_ERROR(CheckOp(*programs[p], any, *op.of_rank[p], p));
      } else if (!is_of_rank || HasGroup(any)) {
        return Unimplemented("partition {} of the slice does not run {}", p,
                             OperationName(*programs[p], any));
      }
    }
  }
  return OkStatus();
}

}  // namespace

const Op& StageOp::any() const {
  return **std::ranges::find_if(of_rank, [](const Op* op) { return op != nullptr; });
}

StatusOr<StagePrograms> StagePrograms::Make(std::vector<const Program*> programs) {
  TROUPE_RETURN_IF_ERROR(CheckMeshes(programs));
  for (size_t p = 1; p < programs.size(); ++p)
    TROUPE_RETURN_IF_ERROR(CheckProgram(*programs[0], *programs[p], p));
  StagePrograms stage(std::move(programs));
  const size_t lists = ListsOf(*stage.programs_[0]).size();
  for (size_t list = 0; list < lists; ++list) {
    TROUPE_ASSIGN_OR_RETURN(StageOps ops, Merge(stage.programs_, list));
    TROUPE_RETURN_IF_ERROR(CheckOps(stage.programs_, ops, list + 2 >= lists));
    stage.lists_.push_back(std::move(ops));
  }
  return stage;
}

const StageOps& StagePrograms::Ops(int chunk_index, model::Piece piece) const {
  const size_t pieces = programs_[0]->ops[0].size();
  return lists_[static_cast<size_t>(chunk_index) * pieces + static_cast<size_t>(piece)];
}

Shape StagePrograms::StorageShape(model::ValueId value) const {
  Shape largest = ShapeOf(programs_[0]->value(value));
  for (const Program* const program : programs_) {
    const Shape own = ShapeOf(program->value(value));
    for (size_t d = 0; d < own.size(); ++d) largest[d] = std::max(largest[d], own[d]);
  }
  return largest;
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

const StageOp* StagePrograms::BegunBy(const Op& wait) const {
  for (const StageOps& list : lists_) {
    for (const StageOp& op : list) {
      const Op& any = op.any();
      if (any.asynchronous && !any.outputs.empty() && any.outputs[0] == wait.inputs[0]) return &op;
    }
  }
  return nullptr;
}

}  // namespace troupe::kernels::xla
