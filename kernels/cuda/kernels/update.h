// A rank's update kernels, each of which handles all of the rank's tensors in one launch. Blocks
// handle equal parts of tensors, by tables that are stored next to the list of tensors in device
// memory.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_UPDATE_H_
#define TROUPE_KERNELS_CUDA_KERNELS_UPDATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/arguments.h"
#include "kernels/cuda/device_code/launch.h"
#include "model/program/optimizer_attributes.h"

namespace troupe::kernels::cuda {

// The work of one block: at most kUpdateElements elements of one tensor.
struct UpdatePart {
  int32_t tensor;
  int32_t part;  // it starts at element part · kUpdateElements
};
inline constexpr int64_t kUpdateElements = 16384;

// The parts of tensors with these numbers of elements, in order. Pure.
std::vector<UpdatePart> UpdateParts(std::span<const int64_t> counts);

struct GradientTensor {
  const float* data;
  int64_t count;
};

// Adds `totals`, d[2], to `control`, d[kControlLanes].
KernelLaunch ControlTotals(int rank, const double* totals, double* control);

// The counts of one router.
struct RouterTotals {
  const double* lanes;  // d[kRouterLanes + experts]
  int64_t experts;
};
// totals: RouterTotals[count] on the device. Counts are whole numbers, so the order of summation
// does not matter.
KernelLaunch ControlRouted(const RouterTotals* totals, int64_t count, double* control);

// All pointers are device pointers.
struct SumOfSquaresTensors {
  const GradientTensor* tensors;
  const UpdatePart* parts;
  int64_t num_parts;
  double* partial;  // scratch, d[num_parts]
  double* control;
  int rank;
};
// Sums the parts in float64 in a fixed order; the second launch adds them to the control word.
KernelLaunch SumOfSquares(const SumOfSquaresTensors& args);
KernelLaunch SumOfSquaresFinish(const SumOfSquaresTensors& args);

// Launch after the control word is reduced. halted: d[1].
KernelLaunch ControlHalt(double* control, double* halted);

// Adds 1 to `applied_steps`, f[1], if the step of this control word is applied.
KernelLaunch CountStep(const double* control, float* applied_steps);

// An optimizer reads and writes these.
struct UpdateTensors {
  const UpdateArgs* tensors;
  const UpdatePart* parts;
  int64_t num_parts;
  const double* control;
  const float* learning_rate;  // f[1]
  const float* applied_steps;  // f[1]
};
// They change nothing if the control word reports a non-finite value or a halted job. REQUIRES:
// num_parts > 0.
KernelLaunch AdamW(const UpdateTensors& args, const model::AdamWAttributes& attributes);
KernelLaunch Sgd(const UpdateTensors& args, const model::SgdAttributes& attributes);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_UPDATE_H_
