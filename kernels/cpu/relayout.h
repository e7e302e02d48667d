// kRelayout as an instruction.
#ifndef TROUPE_KERNELS_CPU_RELAYOUT_H_
#define TROUPE_KERNELS_CPU_RELAYOUT_H_

#include <memory>

#include "collective/communicator.h"
#include "kernels/cpu/instruction.h"
#include "kernels/exchange/row_relayout.h"

namespace troupe::kernels::cpu {

// A null communicator stands for a group of one. `scratch` has twice relayout.bytes().
std::unique_ptr<Instruction> MakeRelayout(RowRelayout relayout, const char* input, char* output,
                                          char* scratch, Communicator* communicator);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_RELAYOUT_H_
