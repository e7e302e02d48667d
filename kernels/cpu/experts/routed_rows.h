// kGatherRouted and kScatterRouted as instructions: run-time counts state how many rows of each
// rank are gathered or reduced over a group.
#ifndef TROUPE_KERNELS_CPU_EXPERTS_ROUTED_ROWS_H_
#define TROUPE_KERNELS_CPU_EXPERTS_ROUTED_ROWS_H_

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
  char* copy;             // scatter: scratch of the input's size, overwritten in its place; or null
  const int32_t* counts;  // numbers of rows, equally many counts per rank, in group order
  int64_t num_counts;
  int64_t row_elements;
  model::DType dtype;
  Purpose purpose;
};

// A null communicator stands for a group of one: rows are copied.
std::unique_ptr<Instruction> MakeGatherRouted(const RoutedRowsArgs& args,
                                              Communicator* communicator);
// Errors: INVALID_ARGUMENT if the dtype has no sum.
StatusOr<std::unique_ptr<Instruction>> MakeScatterRouted(const RoutedRowsArgs& args,
                                                         Communicator* communicator);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_EXPERTS_ROUTED_ROWS_H_
