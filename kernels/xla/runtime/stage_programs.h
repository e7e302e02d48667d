// The programs of the ranks of a slice, which run as one program of XLA with a partition for each
// rank. They must agree in everything but the ranks' own numbers and extents.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_STAGE_PROGRAMS_H_
#define TROUPE_KERNELS_XLA_RUNTIME_STAGE_PROGRAMS_H_

#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/xla/text/tensor.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

// An operation as each rank has it, by partition; null where a rank does not run it, as only some
// ranks add their loss to the control word.
struct StageOp {
  std::vector<const model::Op*> of_rank;
  const model::Op& any() const;
};
using StageOps = std::vector<StageOp>;

// Immutable, thread-safe. The programs must outlive it.
class StagePrograms {
 public:
  // The programs of all ranks of one pipeline stage, by partition; one program is a slice of one
  // rank of any stage. Errors: INVALID_ARGUMENT if they are not those of one stage, or not of all
  // its ranks; UNIMPLEMENTED, which names the value or the operation and how two ranks differ, if
  // one text cannot serve them all.
  static StatusOr<StagePrograms> Make(std::vector<const model::Program*> programs);

  int ranks() const { return static_cast<int>(programs_.size()); }
  const model::Program& program(int partition) const { return *programs_[partition]; }

  // The shape of a value's storage: the largest extents of the ranks.
  Shape StorageShape(model::ValueId value) const;

  // The operations of a piece, which are those of each rank, and those of the update and of the
  // initialisation, which some ranks may not all have.
  const StageOps& Ops(int chunk_index, model::Piece piece) const;
  const StageOps& update() const { return lists_[lists_.size() - 2]; }
  const StageOps& initialize() const { return lists_.back(); }

  // Whether a collective runs within the program: it has several ranks, all of the slice.
  bool IsWithin(const model::Op& op) const;
  // The collective that `wait` completes; null if the programs have none.
  const StageOp* BegunBy(const model::Op& wait) const;

 private:
  explicit StagePrograms(std::vector<const model::Program*> programs)
      : programs_(std::move(programs)) {}

  std::vector<const model::Program*> programs_;
  std::vector<StageOps> lists_;  // the pieces of all chunks, then update and initialisation
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_STAGE_PROGRAMS_H_
