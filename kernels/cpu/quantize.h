// Values in 8 bits: made, given back for products of bfloat16, and the histories that scale them.
#ifndef TROUPE_KERNELS_CPU_QUANTIZE_H_
#define TROUPE_KERNELS_CPU_QUANTIZE_H_

#include <memory>
#include <vector>

#include "kernels/arguments.h"
#include "kernels/cpu/instruction.h"

namespace troupe::kernels::cpu {

// Kernels as those of the table (kernels/cpu/kernels.h), of all levels. The first leaves largest magnitudes in `partial`,
// f[threads]; the second quantises.
void QuantizeAmax(const QuantizeArgs& args, int thread, int threads);
void Quantize(const QuantizeArgs& args, int thread, int threads);
void Dequantize(const DequantizeArgs& args, int thread, int threads);

// control: d[lanes].
std::unique_ptr<Instruction> MakeAmaxHistory(const double* control, std::vector<AmaxHistoryEntry> entries);

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_QUANTIZE_H_
