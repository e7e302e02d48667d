// FP8 kernels (kernels/numerics/float8.h): quantisation, dequantisation for bfloat16 matmuls, and
// the amax histories of delayed scaling. The conventions are those of
// kernels/cuda/kernels/kernels.h.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_QUANTIZE_H_
#define TROUPE_KERNELS_CUDA_KERNELS_QUANTIZE_H_

#include <cstdint>
#include <vector>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

// The launches, in order. The source is read once with a history or block scales, otherwise twice.
// `partial` in the arguments has QuantizeScratchBytes.
int64_t QuantizeScratchBytes(const QuantizeArgs& args);
std::vector<KernelLaunch> Quantize(const QuantizeArgs& args);
KernelLaunch Dequantize(const DequantizeArgs& args);
// Converts the block scales of an operand from the layout of model/program/op_kinds.def to that of
// OperandScales, f[LibraryScaleCount].
int64_t LibraryScaleCount(const DequantizeArgs& operand);
KernelLaunch LibraryScales(const DequantizeArgs& operand, float* to);
// entries: AmaxHistoryEntry[count] on the device; control: d[lanes].
KernelLaunch AmaxHistory(const AmaxHistoryEntry* entries, int64_t count, const double* control);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_QUANTIZE_H_
