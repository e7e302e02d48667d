// Slices of TPUs: rectangles of chips that Google Cloud offers and libtpu describes by name. Pure.
#ifndef TROUPE_PLAN_DEVICE_TPU_SLICE_H_
#define TROUPE_PLAN_DEVICE_TPU_SLICE_H_

#include <string>

#include "base/status.h"
#include "plan/device/tpu_model.h"

namespace troupe {

// Returns the chips along each axis ("2x4", "2x2x1") of the smallest slice that has at least
// `devices` devices. INVALID_ARGUMENT if the largest one has fewer.
StatusOr<std::string> SliceFor(const TpuModel& model, int devices);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_TPU_SLICE_H_
