#include "coordinator/failed_writes.h"

#include <utility>

#include "coordinator/host_faults.h"
#include "coordinator/preference.h"
#include "coordinator/recovery.h"
#include "coordinator/running_layout.h"

namespace troupe {
namespace {

constexpr int kMostFailedWrites = 3;

bool HasRoomWithout(const std::string& worker, const Job& job, const Turn& turn) {
  ClusterView view = WithoutSetAside(ListDevicesFor(turn.fleet, job.id()), turn.fleet);
  std::erase_if(view.free_devices,
                [&](const ClusterDevice& device) { return device.worker == worker; });
  return static_cast<int>(view.free_devices.size()) >= job.plan.ranks_size() &&
         turn.options.planner.place(RunningSpec(job), job.plan, view).ok();
}

}  // namespace

void OnFailedWrite(Job& job, int32_t rank, const std::string& reason, Turn& turn) {
  LayFailedWrite(job, rank, reason, turn);
  const std::string worker = job.plan.ranks(rank).worker();
  FailedWrites& failed = job.failed_writes;
  if (failed.worker != worker) failed = {worker, 0, failed.moved};
  ++failed.count;
  if (failed.count < kMostFailedWrites || failed.moved || !HasRoomWithout(worker, job, turn))
    return;
  failed = {"", 0, true};
  BreakGroup(
      job,
      {MakeFailure("CHECKPOINT_FAILED",
                   fmt::format("its part of {} checkpoints in a row could not be written, and "
                               "other hosts are free: {}",
                               kMostFailedWrites, reason),
                   rank, worker),
       false, false},
      turn);
}

}  // namespace troupe
