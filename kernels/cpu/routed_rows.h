// kGatherRouted and kScatterRouted as instructions: rows over the ranks of a group, as many of each as
// run-time counts tell.
#ifndef TROUPE_KERNELS_CPU_ROUTED_ROWS_H_
#define TROUPE_KERNELS_CPU_ROUTED_ROWS_H_

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "model/program/value.h"

namespace troupe::kernels::cpu {

struct RoutedRowsArgs {
  char* input;
  char* output;
  char* copy;             // of the scatter: working memory of the input's size, used up in its stead; or null
  const int32_t* counts;  // rows, as many counts for each rank, in group order
  int64_t num_counts;
  int64_t row_elements;
  model::DType dtype;
  Purpose purpose;
};

// A null communicator is a group of one: rows are copied.
std::unique_ptr<Instruction> MakeGatherRouted(const RoutedRowsArgs& args,
                                              Communicator* communicator);
// INVALID_ARGUMENT where there is no sum of the dtype.
StatusOr<std::unique_ptr<Instruction>> MakeScatterRouted(const RoutedRowsArgs& args,
                                                         Communicator* communicator);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ROUTED_ROWS_H_
