#include "cli/compile/stage_slice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "plan/layout/cluster_view.h"
#include "plan/layout/slice_placement.h"

namespace troupe {
namespace {

// The inverse of v1.SliceProcess.task.
TpuBounds ChipOfTask(int task, const TpuBounds& bounds) {
  return {task % bounds[0], task / bounds[0] % bounds[1], task / (bounds[0] * bounds[1])};
}

StatusOr<ChipsOfStage> ImagineChips(int ranks, const TpuModel& tpu) {
  const int chips = (ranks + tpu.devices_per_chip - 1) / tpu.devices_per_chip;
  TROUPE_ASSIGN_OR_RETURN(const ClusterView cluster, ImaginedSlice(tpu, chips));
  std::vector<const ClusterDevice*> free;
  for (const ClusterDevice& device : cluster.free_devices) free.push_back(&device);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<StageSlice> placed, PlaceStages(free, 1, chips));
  const StageSlice& slice = placed.front();
  ChipsOfStage stage{.bounds = slice.bounds, .places = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const int task = slice.tasks[static_cast<size_t>(rank / tpu.devices_per_chip)];
    stage.places.push_back({ChipOfTask(task, slice.bounds), rank % tpu.devices_per_chip});
  }
  return stage;
}

}  // namespace

StatusOr<ChipsOfStage> FindChips(const v1::Plan& plan, int pipe_rank, const TpuModel& tpu) {
  ChipsOfStage stage;
  int ranks = 0;
  for (const v1::RankPlacement& rank : plan.ranks()) {
    if (rank.coordinates().pipe() != pipe_rank) continue;
    ++ranks;
    if (!rank.has_slice_process()) continue;
    const v1::SliceProcess& process = rank.slice_process();
    std::ranges::copy(process.bounds(), stage.bounds.begin());
    stage.places.push_back({ChipOfTask(process.task(), stage.bounds), 0});
  }
  if (stage.places.empty()) return ImagineChips(ranks, tpu);
  return stage;
}

std::string TopologyOf(const ChipsOfStage& stage, const TpuModel& tpu) {
  const auto begin = stage.bounds.begin();
  return fmt::format("{}:{}", tpu.generation, fmt::join(begin, begin + tpu.axes, "x"));
}

StatusOr<std::vector<int>> DevicesOf(const ChipsOfStage& stage,
                                     std::span<const kernels::xla::DeviceFacts> devices) {
  std::vector<int> indices;
  for (const ChipsOfStage::Place& place : stage.places) {
    int before = place.device;
    const auto found = std::ranges::find_if(devices, [&](const auto& device) {
      return std::ranges::equal(device.coordinates, place.chip) && before-- == 0;
    });
    if (found == devices.end()) {
      return FailedPrecondition("the topology has no device {} at {}", place.device,
                                fmt::join(place.chip, ","));
    }
    indices.push_back(static_cast<int>(found - devices.begin()));
  }
  return indices;
}

}  // namespace troupe
