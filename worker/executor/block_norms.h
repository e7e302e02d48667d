// Gradient and parameter norms of the model's blocks. Every global element that is trained is
// counted once; frozen parameters are not counted.
//
// All functions REQUIRE that the values are in host memory.
#ifndef TROUPE_WORKER_EXECUTOR_BLOCK_NORMS_H_
#define TROUPE_WORKER_EXECUTOR_BLOCK_NORMS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/backend/value_memory.h"
#include "model/program/program.h"
#include "troupe/v1/step.pb.h"

namespace troupe {

// Returns the index of the block that the value `name` belongs to: 0 for the embedding, 1 + i for
// block i, 1 + `blocks` for the head.
int BlockOf(std::string_view name, int blocks);
// Returns the name of the block with that index, such as "block3 (A)". `letters` has the letters of
// the model's blocks in order.
std::string BlockName(int index, std::string_view letters);

// Measures the norms of the gradients that were reduced last and of the current parameters. The
// sums of gradients are divided by `weight`. Runs one reduction over `all`; null if there is only
// one rank.
StatusOr<std::vector<v1::BlockNorm>> MeasureBlockNorms(const model::Program& program,
                                                       kernels::ValueMemory& values,
                                                       std::string_view letters, double weight,
                                                       Communicator* all);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_BLOCK_NORMS_H_
