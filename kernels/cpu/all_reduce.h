// Collectives of a program as instructions: in-place sums and maxima over the ranks of a group.
#ifndef TROUPE_KERNELS_CPU_ALL_REDUCE_H_
#define TROUPE_KERNELS_CPU_ALL_REDUCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/backend/reduced_ranges.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/wait.h"
#include "model/program/op.h"
#include "model/program/value.h"

namespace troupe::kernels::cpu {

// The reduction for `dtype`; float32 values are sent as `wire`. Absent if the dtype has no such
// reduction.
std::optional<Reduction> ReductionOf(model::DType dtype, model::ReduceKind kind,
                                     model::DType wire = model::DType::kFloat32);

// For each range, copies [input, input + bytes) to output unless the two are equal, then
// all-reduces it there over `communicator` (null: a group of one). If `in_flight` is given, only
// starts the collectives and appends their handles to it. Errors: INVALID_ARGUMENT if the dtype has
// no such reduction.
StatusOr<std::unique_ptr<Instruction>> MakeAllReduce(std::vector<ReducedRange> ranges,
                                                     model::DType dtype,
                                                     const model::AllReduceAttributes& attributes,
                                                     Communicator* communicator,
                                                     std::shared_ptr<InFlight> in_flight);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ALL_REDUCE_H_
