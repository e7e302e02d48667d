// Slices of TPU chips for the stages of a gang: the ranks of a pipeline stage run one program on
// chips that form a rectangle. Pure.
//
// A rectangle has a power of two of chips along each axis. It lies within one host, or it consists
// of whole hosts, because libtpu describes no other part of a slice. Consecutive ranks of a stage
// have neighbouring chips (they follow a snake through the rectangle), so that tensor groups, which
// are runs of consecutive ranks, communicate over few links.
#ifndef TROUPE_PLAN_LAYOUT_SLICE_PLACEMENT_H_
#define TROUPE_PLAN_LAYOUT_SLICE_PLACEMENT_H_

#include <vector>

#include "base/status.h"
#include "plan/device/tpu_model.h"
#include "plan/device/tpu_slice.h"
#include "plan/layout/cluster_view.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// A stage on its chips.
struct StageSlice {
  TpuBounds bounds{};                       // chips of the rectangle along each axis
  TpuBounds host_bounds{};                  // those of them that each host has
  std::vector<const ClusterDevice*> chips;  // by rank in the stage
  std::vector<int> tasks;                   // likewise: v1.SliceProcess.task
};

// The bounds of rectangles of `chips` chips, the most square ones first. Empty unless `chips` is a
// power of two.
std::vector<TpuBounds> RectanglesOf(int chips);

// Chooses a rectangle of `ranks` of the free `chips` for each of `stages` stages. Rectangles are
// taken from the slice with the most free chips, at the lowest position, and from another one when
// it has no more. FAILED_PRECONDITION with what is missing and what is free. REQUIRES: each device
// has a chip that CheckTpuChip accepts.
StatusOr<std::vector<StageSlice>> PlaceStages(const std::vector<const ClusterDevice*>& chips,
                                              int stages, int ranks);

v1::SliceProcess ToProto(const StageSlice& stage, int rank_in_stage);

// The chips of the smallest slice of `model` that has `count` chips, each on a worker without a
// name, for plans without a cluster. INVALID_ARGUMENT if no slice has as many.
StatusOr<ClusterView> ImaginedSlice(const TpuModel& model, int count);

// INVALID_ARGUMENT, with field, value and relation, unless the chip has a position, host_chips of
// powers of two, and an address.
Status CheckTpuChip(const v1::TpuChip& chip);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_SLICE_PLACEMENT_H_
