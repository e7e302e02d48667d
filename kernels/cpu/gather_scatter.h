// Reduce-scatter, all-gather and the exchange of heads as instructions: blocks of rows (dim 0) over
// the ranks of a group.
#ifndef TROUPE_KERNELS_CPU_GATHER_SCATTER_H_
#define TROUPE_KERNELS_CPU_GATHER_SCATTER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/wait.h"
#include "kernels/exchange/row_exchange.h"
#include "model/program/value.h"

namespace troupe::kernels::cpu {

struct ReduceScatterArgs {
  char* input;                 // the blocks of all ranks, contiguous
  char* output;                // this rank's block, inside or outside input
  char* copy;                  // scratch of the input's size, or null: the input is overwritten
  std::vector<size_t> counts;  // elements in each rank's block, in group order
  model::DType dtype;
  Purpose purpose;
  model::DType wire;
};

// A null communicator stands for a group of one. If `in_flight` is given, the instruction only
// starts the collective and appends its handle to it. Errors: INVALID_ARGUMENT if the dtype has no
// sum.
StatusOr<std::unique_ptr<Instruction>> MakeReduceScatter(ReduceScatterArgs args,
                                                         Communicator* communicator,
                                                         std::shared_ptr<InFlight> in_flight);

// `input` is this rank's block, either at its place in `output` or outside it.
std::unique_ptr<Instruction> MakeAllGather(const char* input, char* output,
                                           std::vector<size_t> bytes_by_rank, Purpose purpose,
                                           Communicator* communicator,
                                           std::shared_ptr<InFlight> in_flight);

// `scratch` has twice exchange.bytes().
std::unique_ptr<Instruction> MakeExchangeHeads(RowExchange exchange, const char* input,
                                               char* output, char* scratch,
                                               Communicator* communicator);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_GATHER_SCATTER_H_
