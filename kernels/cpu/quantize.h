// Values in 8 bits: made, given back for products of bfloat16, and the histories that scale them.
#ifndef TROUPE_KERNELS_CPU_QUANTIZE_H_
#define TROUPE_KERNELS_CPU_QUANTIZE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/arguments.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/kernels.h"
#include "kernels/op_sequence.h"

namespace troupe::kernels::cpu {

// Of all levels: what SwiGLU makes is made by those of `kernels`, which outlive the instruction, some rows at a time. Where
// one scale is of all and no history tells it, that is gone over twice, and kept in scratch in between. scratch: of
// QuantizeScratchBytes, whose args need no addresses.
int64_t QuantizeScratchBytes(const QuantizeArgs& args, int threads);
std::unique_ptr<Instruction> MakeQuantize(const QuantizeArgs& args, const KernelTable& kernels, char* scratch, int threads,
                                          Overwrites overwrites);

// A kernel as those of the table (kernels/cpu/kernels.h), of all levels.
void Dequantize(const DequantizeArgs& args, int thread, int threads);

// control: d[lanes].
std::unique_ptr<Instruction> MakeAmaxHistory(const double* control, std::vector<AmaxHistoryEntry> entries);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_QUANTIZE_H_
