// Kernels of values in 8 bits (kernels/float8.h): made, given back for products of bfloat16, and the histories that scale
// them. As the others (kernels/cuda/kernels.h).
#ifndef TROUPE_KERNELS_CUDA_QUANTIZE_H_
#define TROUPE_KERNELS_CUDA_QUANTIZE_H_

#include <cstdint>
#include <vector>

#include "kernels/arguments.h"
#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

// One after the other. What is quantised is read, or what it is made of, once where a history or blocks scale it, else twice.
// `partial`: of so many bytes.
int64_t QuantizeScratchBytes(const QuantizeArgs& args);
std::vector<KernelLaunch> Quantize(const QuantizeArgs& args);
KernelLaunch Dequantize(const DequantizeArgs& args);
// Scales of blocks of a factor from the form of model/program/op.h to that of ProductScales, f[LibraryScaleCount].
int64_t LibraryScaleCount(const DequantizeArgs& factor);
KernelLaunch LibraryScales(const DequantizeArgs& factor, float* to);
// entries: AmaxHistoryEntry[count] on the device; control: d[lanes].
KernelLaunch AmaxHistory(const AmaxHistoryEntry* entries, int64_t count, const double* control);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_QUANTIZE_H_
