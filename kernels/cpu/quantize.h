// FP8 instructions: quantisation, dequantisation for bfloat16 matmuls, and the amax histories of
// delayed scaling.
#ifndef TROUPE_KERNELS_CPU_QUANTIZE_H_
#define TROUPE_KERNELS_CPU_QUANTIZE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/arguments.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

// Quantises for all levels: the kernels of `kernels`, which must outlive the instruction, compute
// SwiGLU's outputs some rows at a time. With one scale for the tensor and no history there are two
// passes, and the computed rows are kept in scratch between them. `scratch` has
// QuantizeScratchBytes, which reads no addresses of its args.
int64_t QuantizeScratchBytes(const QuantizeArgs& args, int threads);
std::unique_ptr<Instruction> MakeQuantize(const QuantizeArgs& args, const KernelTable& kernels,
                                          char* scratch, int threads, Overwrites overwrites);

// A kernel like those of the table (kernels/cpu/kernels.h), for all levels.
void Dequantize(const DequantizeArgs& args, int thread, int threads);

// `control` is d[lanes].
std::unique_ptr<Instruction> MakeAmaxHistory(const double* control,
                                             std::vector<AmaxHistoryEntry> entries);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_QUANTIZE_H_
