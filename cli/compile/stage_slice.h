// The chips for which the program of a stage is compiled. Pure.
#ifndef TROUPE_CLI_COMPILE_STAGE_SLICE_H_
#define TROUPE_CLI_COMPILE_STAGE_SLICE_H_

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/xla/compile/stage_compiler.h"
#include "plan/device/tpu_model.h"
#include "plan/device/tpu_slice.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// A rectangle of chips, and the place of each rank of a stage in it.
struct ChipsOfStage {
  struct Place {
    TpuBounds chip{};  // its coordinates, which count from the corner of the rectangle
    int device = 0;    // among the devices of the chip
  };
  TpuBounds bounds{};
  std::vector<Place> places;  // by rank in the stage
};

// Returns the chips that the plan gives the ranks of stage `pipe_rank`. Where it gives them none,
// because a chip has two devices, neighbouring ranks share the chips of an imagined slice, which
// are placed as PlaceStages does. Errors: those of ImaginedSlice and PlaceStages.
StatusOr<ChipsOfStage> FindChips(const v1::Plan& plan, int pipe_rank, const TpuModel& tpu);

// Returns the name of their topology ("v6e:2x4").
std::string TopologyOf(const ChipsOfStage& stage, const TpuModel& tpu);

// Returns the index in `devices`, those of the topology, of each rank's device. A run has the same
// order: its ranks find each other's devices by the ids of their chips. FAILED_PRECONDITION if
// there is no such device.
StatusOr<std::vector<int>> DevicesOf(const ChipsOfStage& stage,
                                     std::span<const kernels::xla::DeviceFacts> devices);

}  // namespace troupe

#endif  // TROUPE_CLI_COMPILE_STAGE_SLICE_H_
