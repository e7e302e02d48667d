// A rank's kernels of an update, over all of its tensors in one launch each. Blocks have equal parts of tensors, by tables
// that lie beside the tensors in the device's memory.
#ifndef TROUPE_KERNELS_CUDA_UPDATE_H_
#define TROUPE_KERNELS_CUDA_UPDATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

// What one block works on: at most kUpdateElements elements of one tensor.
struct UpdatePart {
  int32_t tensor;
  int32_t part;  // its first element is part · kUpdateElements
};
inline constexpr int64_t kUpdateElements = 16384;

// Of tensors of so many elements, in order. Pure.
std::vector<UpdatePart> UpdateParts(std::span<const int64_t> counts);

struct GradientTensor {
  const float* data;
  int64_t count;
};
struct AdamWTensor {
  float* parameter;
  float* exp_avg;
  float* exp_avg_sq;
  const float* gradient;
  void* copy;  // bf16 compute copy, or null
  int64_t count;
  bool weight_decay;
};

// control: d[kControlLanes]; totals: d[2].
KernelLaunch ControlTotals(int rank, const double* totals, double* control);

// What a router has counted.
struct RouterTotals {
  const double* lanes;  // d[kRouterLanes + experts]
  int64_t experts;
};
// totals: RouterTotals[count] on the device. Counts are whole numbers: the order of sums does not matter.
KernelLaunch ControlRouted(const RouterTotals* totals, int64_t count, double* control);

// All pointers are the device's.
struct SumOfSquaresTensors {
  const GradientTensor* tensors;
  const UpdatePart* parts;
  int64_t num_parts;
  double* partial;  // d[num_parts] of scratch
  double* control;
  int rank;
};
// Sums of parts, in float64 and a fixed order; the second launch adds them to the control word.
KernelLaunch SumOfSquares(const SumOfSquaresTensors& args);
KernelLaunch SumOfSquaresFinish(const SumOfSquaresTensors& args);

// After the control word is reduced. halted: d[1].
KernelLaunch ControlHalt(double* control, double* halted);

struct AdamWTensors {
  const AdamWTensor* tensors;
  const UpdatePart* parts;
  int64_t num_parts;
  const double* control;
  const float* learning_rate;  // f[1]
  float* applied_steps;        // f[1]
  double beta1, beta2, eps, weight_decay, max_norm;
};
// Nothing changes where the control word says that something is not finite or the job has halted.
// `applied_steps` stays as it is: launch CountAppliedStep next. REQUIRES: num_parts > 0.
KernelLaunch AdamW(const AdamWTensors& args);
// Adds 1 to `applied_steps` where the step of this control word is applied.
KernelLaunch CountAppliedStep(const double* control, float* applied_steps);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_UPDATE_H_
