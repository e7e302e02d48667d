// Collectives of a program as instructions: sums and maxima in place over the ranks of a group.
#ifndef TROUPE_KERNELS_CPU_ALL_REDUCE_H_
#define TROUPE_KERNELS_CPU_ALL_REDUCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/wait.h"
#include "kernels/reduced_ranges.h"
#include "model/program/op.h"
#include "model/program/value.h"

namespace troupe::kernels::cpu {

// Of values that travel as `wire` where they are float32. Absent where there is no such reduction of the dtype.
std::optional<Reduction> ReductionOf(model::DType dtype, model::ReduceKind kind,
                                     model::DType wire = model::DType::kFloat32);

// Of each range, [input, input + bytes) is copied to output where the two differ, then reduced there
// over `communicator` (null: a group of one): begun only and put to `under_way` where that is given. INVALID_ARGUMENT where there is no such reduction for
// the dtype.
StatusOr<std::unique_ptr<Instruction>> MakeAllReduce(std::vector<ReducedRange> ranges,
                                                     model::DType dtype,
                                                     const model::CollectiveAttributes& attributes,
                                                     Communicator* communicator,
                                                     std::shared_ptr<UnderWay> under_way);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ALL_REDUCE_H_
