// kShift as an instruction.
#ifndef TROUPE_KERNELS_CPU_SHIFT_H_
#define TROUPE_KERNELS_CPU_SHIFT_H_

#include <cstdint>
#include <memory>

#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/wait.h"

namespace troupe::kernels::cpu {

struct ShiftArgs {
  const char* input;
  char* output;
  int64_t bytes;
  int32_t shift;  // places along the ring
  Purpose purpose;
};

// A null communicator stands for a group of one. If `in_flight` is given, the instruction only
// starts the collective and appends its handle to it.
std::unique_ptr<Instruction> MakeShift(const ShiftArgs& args, Communicator* communicator,
                                       std::shared_ptr<InFlight> in_flight);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_SHIFT_H_
