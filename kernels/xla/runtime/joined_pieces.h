// Pieces of a step that run as one program. A value that no other program uses is then the
// compiler's own: it needs no memory between programs, and may not need any at all.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_JOINED_PIECES_H_
#define TROUPE_KERNELS_XLA_RUNTIME_JOINED_PIECES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "kernels/xla/runtime/stage_programs.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// The way in which a rank uses its program.
struct StepUse {
  bool single_microbatch = false;  // a step has one microbatch
  bool reads_gradients = true;     // the host reads sums of gradients after a step
  bool evaluates = true;           // it may run evaluations
};

// The values that a program treats in another way than as storage of their own.
struct ValueUse {
  // Roots that exist only within a group of pieces: nobody reads them after it.
  std::set<model::ValueId> inner;
  // The parameter from which a compute copy is converted where it is read, by the copy's root.
  std::map<model::ValueId, model::ValueId> converted;
  // The program runs only in a step's single microbatch, which overwrites every sum.
  bool only_microbatch = false;
};

// A piece of a chunk; without a chunk, the update.
struct StepPiece {
  std::optional<int> chunk_index;
  model::Piece piece = model::Piece::kUpdate;
  bool operator==(const StepPiece&) const = default;
};

// Pieces that run one after the other in every step.
struct PieceGroup {
  std::vector<StepPiece> pieces;
  std::vector<size_t> begins;  // the first operation of each piece in `ops`
  StageOps ops;                // the operations of all pieces
  ValueUse values;
};

// Whether an operation runs between compiled programs: its collective leaves the slice.
using LeavesSlice = std::function<bool(const model::Op&)>;

// Immutable, thread-safe.
class StepGroups {
 public:
  // The groups that a step runs: each piece of its schedule is in one of them. A piece is joined
  // with the one before it where every schedule with the plan's buffers runs it next. Pure.
  static StepGroups Make(const StagePrograms& stage, const model::MemoryPlan& plan,
                         const StepUse& use, const LeavesSlice& leaves_slice);

  const std::vector<PieceGroup>& groups() const { return groups_; }
  // The group of a piece, and null if the schedule does not run it.
  const PieceGroup* Of(const StepPiece& piece) const;

  // The values of a program that runs a piece alone; and of one that evaluates a forward piece, for
  // which no derivative follows.
  const ValueUse& alone() const { return alone_; }
  const ValueUse& evaluation() const { return evaluation_; }

 private:
  std::vector<PieceGroup> groups_;
  ValueUse alone_, evaluation_;
};

// Whether the plan's schedule runs pieces of this kind: B, or I and W apart.
inline bool RunsInSchedule(model::Piece piece, const model::MemoryPlan& plan) {
  const bool is_half =
      piece == model::Piece::kInputGradient || piece == model::Piece::kWeightGradient;
  return is_half ? plan.split_backward : piece != model::Piece::kBackward || !plan.split_backward;
}

// The operations of a piece.
const StageOps& OpsOf(const StagePrograms& stage, const StepPiece& piece);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_JOINED_PIECES_H_
