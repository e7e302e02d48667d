#include "worker/rank/slice_devices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "plan/device/tpu_slice.h"

namespace troupe {

using kernels::xla::DeviceFacts;

std::vector<int> RanksOfStage(const v1::Plan& plan, int rank) {
  std::vector<int> ranks;
  for (const v1::RankPlacement& placement : plan.ranks()) {
    if (placement.coordinates().pipe() == plan.ranks(rank).coordinates().pipe())
      ranks.push_back(placement.rank());
  }
  return ranks;
}

StatusOr<v1::RankDevice> OwnDevice(std::span<const DeviceFacts> devices, int ranks) {
  if (std::ssize(devices) != ranks) {
    return FailedPrecondition("the plugin has {} devices in the slice of a stage of {} ranks",
                              devices.size(), ranks);
  }
  if (const auto own = std::ranges::count(devices, true, &DeviceFacts::addressable); own != 1)
    return FailedPrecondition("the process of a rank has {} devices of its slice, not one", own);
  const DeviceFacts& own = *std::ranges::find(devices, true, &DeviceFacts::addressable);
  // The coordinator denies such a device, and the job would wait for it.
  if (std::ssize(own.coordinates) > kTpuAxes) {
    return FailedPrecondition("the plugin states {} coordinates for a chip, which has at most {}",
                              own.coordinates.size(), kTpuAxes);
  }
  v1::RankDevice device;
  device.set_id(own.id);
  for (const int64_t coordinate : own.coordinates)
    device.add_coordinates(static_cast<int32_t>(coordinate));
  return device;
}

StatusOr<std::vector<int>> DevicesOfRanks(std::span<const DeviceFacts> devices,
                                          std::span<const v1::RankDevice> book,
                                          std::span<const int> ranks) {
  std::vector<int> indices;
  for (const int rank : ranks) {
    if (rank >= std::ssize(book)) {
      return FailedPrecondition("rank {} has no device among the {} of the job", rank, book.size());
    }
    const int id = book[static_cast<size_t>(rank)].id();
    const auto found = std::ranges::find(devices, id, &DeviceFacts::id);
    if (found == devices.end()) {
      return FailedPrecondition("rank {} has device {}, which is not in the slice of this rank",
                                rank, id);
    }
    const int index = static_cast<int>(found - devices.begin());
    if (const auto earlier = std::ranges::find(indices, index); earlier != indices.end()) {
      return FailedPrecondition("ranks {} and {} both have device {} of their slice",
                                ranks[static_cast<size_t>(earlier - indices.begin())], rank, id);
    }
    indices.push_back(index);
  }
  return indices;
}

std::string MisplacedChips(const v1::Plan& plan, std::span<const v1::RankDevice> book,
                           std::span<const int> ranks) {
  // A slice may be a part of a larger one: places count from its corner.
  std::vector<TpuBounds> at;
  TpuBounds corner{INT32_MAX, INT32_MAX, INT32_MAX};
  for (const int rank : ranks) {
    const v1::RankDevice& device = book[static_cast<size_t>(rank)];
    if (device.coordinates_size() != kTpuAxes) {
      return fmt::format("chips of this slice: rank {} has {} coordinates, not {}", rank,
                         device.coordinates_size(), kTpuAxes);
    }
    at.push_back({device.coordinates(0), device.coordinates(1), device.coordinates(2)});
    for (int axis = 0; axis < kTpuAxes; ++axis)
      corner[axis] = std::min(corner[axis], at.back()[axis]);
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    const v1::SliceProcess& planned = plan.ranks(ranks[i]).slice_process();
    const int x = at[i][0] - corner[0], y = at[i][1] - corner[1], z = at[i][2] - corner[2];
    const int task = x + planned.bounds(0) * (y + planned.bounds(1) * z);
    if (x < planned.bounds(0) && y < planned.bounds(1) && task == planned.task()) continue;
    return fmt::format(
        "chips of this slice: rank {} has the chip at {},{},{} of its slice, the plan that of "
        "process {} "
        "in {}: neighbouring ranks may have distant chips",
        ranks[i], x, y, z, planned.task(), fmt::join(planned.bounds(), "x"));
  }
  return "";
}

}  // namespace troupe
