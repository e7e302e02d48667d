// The devices of a slice as each of its processes numbers them. Pure.
#ifndef TROUPE_WORKER_RANK_SLICE_DEVICES_H_
#define TROUPE_WORKER_RANK_SLICE_DEVICES_H_

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Returns the ranks of `rank`'s stage, ascending: the partitions of its slice's program.
std::vector<int> RanksOfStage(const v1::Plan& plan, int rank);

// Returns the one device of this process as the other ranks get to know it. FAILED_PRECONDITION if
// it has another number of devices, if the client's slice has another number than `ranks`, or if
// the plugin states more coordinates than a chip has.
StatusOr<v1::RankDevice> OwnDevice(std::span<const kernels::xla::DeviceFacts> devices, int ranks);

// Returns the index in `devices` of each of `ranks` (RanksOfStage). `book`: by rank of the job.
// FAILED_PRECONDITION, with rank and id, if a rank has a device that the client does not know, or
// that another rank has.
StatusOr<std::vector<int>> DevicesOfRanks(std::span<const kernels::xla::DeviceFacts> devices,
                                          std::span<const v1::RankDevice> book,
                                          std::span<const int> ranks);

// Returns "chips of this slice: …" if the chips of the ranks are not at the places in the slice
// that the plan counts on, so that neighbouring ranks may have distant chips; else empty.
std::string MisplacedChips(const v1::Plan& plan, std::span<const v1::RankDevice> book,
                           std::span<const int> ranks);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_SLICE_DEVICES_H_
