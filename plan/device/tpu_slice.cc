#include "plan/device/tpu_slice.h"

#include <span>
#include <string_view>

namespace troupe {
namespace {

// By number of chips. In a slice of more than one host every axis is a whole number of hosts, which
// have 2x2 chips or more.
constexpr const char* kFlat[] = {"1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"};
constexpr const char* kSolid[] = {"2x2x1", "2x2x2", "2x2x4",  "2x4x4",   "4x4x4",   "4x4x8",
                                  "4x8x8", "8x8x8", "8x8x16", "8x16x16", "16x16x16"};

int ChipsOf(std::string_view shape) {
  const TpuBounds bounds = BoundsOfSlice(shape);
  return bounds[0] * bounds[1] * bounds[2];
}

}  // namespace

TpuBounds BoundsOfSlice(std::string_view slice) {
  TpuBounds bounds{0, 1, 1};
  size_t axis = 0;
  for (const char c : slice) {
    if (c == 'x') {
      bounds[++axis] = 0;
    } else {
      bounds[axis] = 10 * bounds[axis] + (c - '0');
    }
  }
  return bounds;
}

StatusOr<std::string> SliceFor(const TpuModel& model, int devices) {
  const std::span<const char* const> shapes =
      model.axes == 2 ? std::span<const char* const>(kFlat) : std::span<const char* const>(kSolid);
  for (const char* const shape : shapes) {
    if (ChipsOf(shape) * model.devices_per_chip >= devices) return std::string(shape);
  }
  return InvalidArgument("{} devices are needed, but a slice of {} has at most {}", devices,
                         model.model, model.chips_per_slice * model.devices_per_chip);
}

}  // namespace troupe
