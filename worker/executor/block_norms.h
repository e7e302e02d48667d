// Gradient and parameter norms of the model's blocks, every global element counted once.
//
// REQUIRES of all functions: the executable's values are in host memory.
#ifndef TROUPE_WORKER_EXECUTOR_BLOCK_NORMS_H_
#define TROUPE_WORKER_EXECUTOR_BLOCK_NORMS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/backend.h"
#include "model/program/program.h"

namespace troupe {

struct BlockNorm {
  std::string block;  // "embedding", "block3 (A)", "head" (with the final norm)
  double gradient = 0;
  double parameter = 0;
};

// The index among the model's blocks of the value `name`: 0 for the embedding, 1 + i for block i,
// 1 + `blocks` for the head.
int BlockOf(std::string_view name, int blocks);
// "block3 (A)" of that index; `letters`: of the model's blocks in order.
std::string BlockName(int index, std::string_view letters);

// Of the gradients that were reduced last and the parameters as they are. `weight`: what the
// gradients' sums are divided by. Runs one reduction over `all`; null: there is one rank.
StatusOr<std::vector<BlockNorm>> MeasureBlockNorms(const model::Program& program,
                                                   kernels::Executable& executable,
                                                   std::string_view letters, double weight,
                                                   Communicator* all);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_BLOCK_NORMS_H_
