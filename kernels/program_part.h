// A program reduced to some of its operations, on random contents: what benchmarks of kernels measure on any backend.
#ifndef TROUPE_KERNELS_PROGRAM_PART_H_
#define TROUPE_KERNELS_PROGRAM_PART_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "kernels/backend.h"
#include "model/program/program.h"

namespace troupe::kernels {

using KeepOp = std::function<bool(const model::Op&)>;
// The same values, of the ops those that `keep` wants; nothing is initialized.
model::Program OnlyOps(const model::Program& program, const KeepOp& keep);

// Small normal numbers in the values of the program's ops; integers from 0 to 127.
Status FillRandomly(Executable& executable, const model::Program& program);

// "[1024,768] [2304,768]": the extents of the first three inputs.
std::string ShapesOf(const model::Op& op, const model::Program& program);

// Bytes that one run of `op` reads and writes in main memory: of a table only the rows that tokens pick.
int64_t BytesTouched(const model::Op& op, const model::Program& program);

// Whether `op` is one of a rank by itself: neither a collective nor a copy, nor what waits for them.
bool IsOfOneRank(model::OpKind kind);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_PROGRAM_PART_H_
