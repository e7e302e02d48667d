// Programs of a few operations in one chunk, each value in its own memory: for tests, burn-in and
// rate measurements.
#ifndef TROUPE_KERNELS_BACKEND_PLAIN_PROGRAM_H_
#define TROUPE_KERNELS_BACKEND_PLAIN_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// A program with one chunk and no operations.
model::Program PlainProgram();
// Adds a value with the same local and global extents.
model::ValueId AddPlainValue(model::Program& program, model::DType dtype,
                             const std::vector<int64_t>& extents, std::string name);
// Appends `op` to the chunk's forward piece.
void AddPlainOp(model::Program& program, model::Op op);

// Places the values of `program` one after the other, without overlap; a view shares the memory of
// its root.
model::MemoryPlan PlainPlan(const model::Program& program);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_PLAIN_PROGRAM_H_
