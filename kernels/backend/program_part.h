// Reduces a program to some of its operations and fills it with random contents, so that benchmarks
// can measure kernels on any backend.
#ifndef TROUPE_KERNELS_BACKEND_PROGRAM_PART_H_
#define TROUPE_KERNELS_BACKEND_PROGRAM_PART_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "kernels/backend/backend.h"
#include "model/program/program.h"

namespace troupe::kernels {

using KeepOp = std::function<bool(const model::Op&)>;
// A program with the same values and only the ops that `keep` selects; it initializes nothing.
model::Program OnlyOps(const model::Program& program, const KeepOp& keep);

// Fills the values of the program's ops with small normally distributed numbers, or with integers
// from 0 to 127.
Status FillRandomly(ValueMemory& values, const model::Program& program);

// "[1024,768] [2304,768]": the extents of the first three inputs.
std::string ShapesOf(const model::Op& op, const model::Program& program);

// Bytes of main memory that one run of `op` reads and writes. A table counts only the rows that the
// tokens select.
int64_t BytesTouched(const model::Op& op, const model::Program& program);

// Whether a rank runs such operations alone: they are neither collectives nor copies, waits or
// operations on the control word.
bool IsOfOneRank(model::OpKind kind);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_PROGRAM_PART_H_
