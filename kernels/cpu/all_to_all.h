// kAllToAll as an instruction.
#ifndef TROUPE_KERNELS_CPU_ALL_TO_ALL_H_
#define TROUPE_KERNELS_CPU_ALL_TO_ALL_H_

#include <cstdint>
#include <memory>

#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/wait.h"

namespace troupe::kernels::cpu {

struct AllToAllArgs {
  const char* input;
  char* output;
  // i[num_counts]: rows sent to and received from each pair of rank and expert; null: equal blocks
  // of one element.
  const int32_t* sent;
  const int32_t* received;
  int64_t num_counts;
  int64_t row_bytes;
};

// A null communicator stands for a group of one: rows stay in place or are copied. If `in_flight`
// is given, the instruction only starts the collective and appends its handle to it.
std::unique_ptr<Instruction> MakeAllToAll(const AllToAllArgs& args, Purpose purpose,
                                          Communicator* communicator,
                                          std::shared_ptr<InFlight> in_flight);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_ALL_TO_ALL_H_
