#include "kernels/xla/runtime/joined_pieces.h"

#include <algorithm>
#include <utility>

#include "kernels/xla/runtime/stage_roots.h"

namespace troupe::kernels::xla {
namespace {

using model::Piece;
using model::Program;
using model::Role;
using model::ValueId;

// The pieces of a schedule, in the order in which a step begins with them.
std::vector<StepPiece> PiecesOf(const Program& program, const model::MemoryPlan& plan,
                                bool (*takes)(Piece)) {
  std::vector<StepPiece> pieces;
  for (size_t chunk = 0; chunk < program.ops.size(); ++chunk) {
    for (size_t index = 0; index < program.ops[chunk].size(); ++index) {
      const auto piece = static_cast<Piece>(index);
      if (RunsInSchedule(piece, plan) && takes(piece))
        pieces.push_back({static_cast<int>(chunk), piece});
    }
  }
  return pieces;
}

bool IsUnshard(Piece piece) { return piece == Piece::kUnshard; }
bool IsReduce(Piece piece) { return piece == Piece::kReduce; }
bool IsOfMicrobatch(Piece piece) {
  return !IsUnshard(piece) && !IsReduce(piece) && piece != Piece::kUpdate;
}

// Whether the backward of a microbatch always follows its forward: no other microbatch is alive,
// and nothing is sent or received in between.
bool BackwardFollows(const Program& program, const model::MemoryPlan& plan) {
  if (program.chunks.size() != 1 || plan.buffers[0] != 1) return false;
  const model::ChunkInterface& chunk = program.chunks[0];
  if (chunk.output != model::kNoValue) return false;
  return chunk.input == model::kNoValue || !plan.split_backward;
}

// The copies that programs can convert from their parameters: both have storage of their own of the
// same shape, and no collective outside of programs uses the copy.
std::map<ValueId, ValueId> ConvertedCopies(const StagePrograms& stage,
                                           const LeavesSlice& leaves_slice) {
  const Program& program = stage.program(0);
  std::map<ValueId, ValueId> converted;
  for (const model::ParameterEntry& entry : program.parameters) {
    const model::Value& copy = program.value(entry.compute_copy);
    if (entry.compute_copy == entry.value || copy.view_of != model::kNoValue ||
        program.value(entry.value).view_of != model::kNoValue ||
        stage.StorageShape(entry.compute_copy) != stage.StorageShape(entry.value))
      continue;
    converted[entry.compute_copy] = entry.value;
  }
  ForEachOp(program, [&](const model::Op& op) {
    if (!leaves_slice(op)) return;
    ForEachValue(op, [&](ValueId id) {
      int64_t offset = 0;
      converted.erase(RootOf(program, id, &offset));
    });
  });
  return converted;
}

// The roots of the copies that the update writes for the next step.
std::set<ValueId> UpdatedCopies(const Program& program) {
  std::set<ValueId> roots;
  for (const model::ParameterEntry& entry : program.parameters) {
    int64_t offset = 0;
    roots.insert(RootOf(program, entry.compute_copy, &offset));
  }
  return roots;
}

// The roots of values that are sent, received or copied between chunks.
std::set<ValueId> Boundaries(const Program& program) {
  std::set<ValueId> roots;
  for (const model::ChunkInterface& chunk : program.chunks) {
    for (const ValueId id :
         {chunk.input, chunk.output, chunk.input_gradient, chunk.output_gradient}) {
      int64_t offset = 0;
      if (id != model::kNoValue) roots.insert(RootOf(program, id, &offset));
    }
  }
  return roots;
}

}  // namespace

const StageOps& OpsOf(const StagePrograms& stage, const StepPiece& piece) {
  return piece.chunk_index.has_value() ? stage.Ops(*piece.chunk_index, piece.piece)
                                       : stage.update();
}

StepGroups StepGroups::Make(const StagePrograms& stage, const model::MemoryPlan& plan,
                            const StepUse& use, const LeavesSlice& leaves_slice) {
  const Program& program = stage.program(0);
  std::vector<std::vector<StepPiece>> lists;
  const bool follows = BackwardFollows(program, plan);
  lists.push_back(PiecesOf(program, plan, IsUnshard));
  const std::vector<StepPiece> of_microbatch = PiecesOf(program, plan, IsOfMicrobatch);
  if (follows) {
    lists.push_back(of_microbatch);
  } else {
    for (const StepPiece& piece : of_microbatch) lists.push_back({piece});
  }
  lists.push_back(PiecesOf(program, plan, IsReduce));
  lists.back().emplace_back();
  const bool is_whole =
      follows && use.single_microbatch && program.chunks[0].input == model::kNoValue;
  if (is_whole) {
    std::vector<StepPiece> whole;
    for (const std::vector<StepPiece>& list : lists)
      whole.insert(whole.end(), list.begin(), list.end());
    lists = {std::move(whole)};
  }

  StepGroups step;
  if (is_whole) step.alone_.converted = ConvertedCopies(stage, leaves_slice);
  step.evaluation_ = step.alone_;
  for (const std::vector<StepPiece>& pieces : lists) {
    PieceGroup group;
    group.pieces = pieces;
    group.values = step.alone_;
    group.values.only_microbatch = is_whole;
    for (const StepPiece& piece : pieces) {
      const StageOps& ops = OpsOf(stage, piece);
      group.begins.push_back(group.ops.size());
      group.ops.insert(group.ops.end(), ops.begin(), ops.end());
    }
    step.groups_.push_back(std::move(group));
  }
  const std::set<ValueId> boundaries = Boundaries(program), copies = UpdatedCopies(program);
  const std::set<ValueId> initial =
      RootsUsed(stage, stage.initialize(), 0, stage.initialize().size());
  std::map<ValueId, int> groups_with;  // by root
  std::vector<std::set<ValueId>> used;
  for (const PieceGroup& group : step.groups_) {
    used.push_back(RootsUsed(stage, group.ops, 0, group.ops.size()));
    for (const ValueId root : used.back()) ++groups_with[root];
  }
  for (size_t g = 0; g < used.size(); ++g) {
    for (const ValueId root : used[g]) {
      if (boundaries.contains(root)) continue;
      const Role role = program.value(root).role;
      const bool is_sum = is_whole && !use.reads_gradients && role == Role::kGradient;
      // Copies of other parts of a parameter: gathered, or of another type.
      const bool is_made_by_step = is_whole && role == Role::kComputeCopy &&
                                   !copies.contains(root) && !initial.contains(root);
      const bool may_be_inner =
          role == Role::kSaved || role == Role::kActivation || is_sum || is_made_by_step;
      if (groups_with[root] == 1 && may_be_inner) step.groups_[g].values.inner.insert(root);
      if (role == Role::kSaved) step.evaluation_.inner.insert(root);
    }
  }
  return step;
}

const PieceGroup* StepGroups::Of(const StepPiece& piece) const {
  const auto found = std::ranges::find_if(groups_, [&](const PieceGroup& group) {
    return std::ranges::find(group.pieces, piece) != group.pieces.end();
  });
  return found == groups_.end() ? nullptr : &*found;
}

}  // namespace troupe::kernels::xla
