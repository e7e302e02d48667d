// Slices of TPUs: rectangles of chips that Google Cloud offers and libtpu describes by name. Pure.
#ifndef TROUPE_PLAN_DEVICE_TPU_SLICE_H_
#define TROUPE_PLAN_DEVICE_TPU_SLICE_H_

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"
#include "plan/device/tpu_model.h"

namespace troupe {

inline constexpr int kTpuAxes = 3;
// Along x, y and z; z is 1 where the torus has two dimensions.
using TpuBounds = std::array<int, kTpuAxes>;

// Returns the bounds of a slice by the text of SliceFor: {2, 4, 1} for "2x4".
TpuBounds BoundsOfSlice(std::string_view slice);

// Returns the chips along each axis ("2x4", "2x2x1") of the smallest slice that has at least
// `devices` devices. INVALID_ARGUMENT if the largest one has fewer.
StatusOr<std::string> SliceFor(const TpuModel& model, int devices);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_TPU_SLICE_H_
