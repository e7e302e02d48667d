// Programs of a few operations in one chunk, on values of their own: for tests, burn-in and rates.
#ifndef TROUPE_KERNELS_PLAIN_PROGRAM_H_
#define TROUPE_KERNELS_PLAIN_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// One chunk without operations.
model::Program PlainProgram();
// The same on this rank as globally.
model::ValueId AddPlainValue(model::Program& program, model::DType dtype, const std::vector<int64_t>& extents,
                             std::string name);
// At the end of the chunk's forward piece.
void AddPlainOp(model::Program& program, model::Op op);

// The values of `program` one after the other, none in another's place.
model::MemoryPlan PlainPlan(const model::Program& program);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_PLAIN_PROGRAM_H_
