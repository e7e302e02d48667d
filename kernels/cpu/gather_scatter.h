// Reduce-scatter, all-gather and the exchange of heads of a program as instructions: blocks of rows (dim 0)
// over the ranks of a group.
#ifndef TROUPE_KERNELS_CPU_GATHER_SCATTER_H_
#define TROUPE_KERNELS_CPU_GATHER_SCATTER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/wait.h"
#include "kernels/row_exchange.h"
#include "model/program/value.h"

namespace troupe::kernels::cpu {

struct ReduceScatterArgs {
  char* input;   // the blocks of all ranks, one after the other
  char* output;  // this rank's block: within input, or apart from it
  char* copy;    // working memory of the input's size, used up in its stead; null: the input is
  std::vector<size_t> counts;  // elements of each rank's block, in group order
  model::DType dtype;
  Purpose purpose;
  model::DType wire;
};

// A null communicator is a group of one. Where `under_way` is given, the operation is only begun and put
// there. INVALID_ARGUMENT where there is no sum of the dtype.
StatusOr<std::unique_ptr<Instruction>> MakeReduceScatter(ReduceScatterArgs args,
                                                         Communicator* communicator,
                                                         std::shared_ptr<UnderWay> under_way);

// `input`: this rank's block, within `output` at its own place or apart from it.
std::unique_ptr<Instruction> MakeAllGather(const char* input, char* output,
                                           std::vector<size_t> bytes_by_rank, Purpose purpose,
                                           Communicator* communicator,
                                           std::shared_ptr<UnderWay> under_way);

// `scratch`: twice exchange.bytes().
std::unique_ptr<Instruction> MakeExchangeHeads(RowExchange exchange, const char* input, char* output,
                                          char* scratch, Communicator* communicator);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_GATHER_SCATTER_H_
