// The programs of the ranks of a slice, which run as one program of XLA with a partition for each
// rank. They must agree in everything but the ranks' own numbers and extents.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_STAGE_PROGRAMS_H_
#define TROUPE_KERNELS_XLA_RUNTIME_STAGE_PROGRAMS_H_

#include <vector>

#include "base/status.h"
#include "kernels/xla/text/tensor.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

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
  // The list of each rank that corresponds to `list`, a list of operations of one of the programs.
  std::vector<const std::vector<model::Op>*> ListsLike(const std::vector<model::Op>& list) const;

  // Whether a collective runs within the program: it has several ranks, all of the slice.
  bool IsWithin(const model::Op& op) const;
  // The collective that `wait` completes, as each rank has it; none if the programs have none.
  std::vector<const model::Op*> BegunBy(const model::Op& wait) const;

 private:
  explicit StagePrograms(std::vector<const model::Program*> programs)
      : programs_(std::move(programs)) {}

  std::vector<const model::Program*> programs_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_STAGE_PROGRAMS_H_
