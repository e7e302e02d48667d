#include "coordinator/job/failed_writes.h"

#include <string>

#include "base/failure_cause.h"
#include "coordinator/faults/host_faults.h"
#include "coordinator/job/images.h"
#include "coordinator/job/running_layout.h"
#include "coordinator/state/job_failure.h"
#include "coordinator/state/preference.h"
#include "coordinator/state/stop.h"
#include "coordinator/state/transition.h"

namespace troupe {
namespace {

constexpr int kMostFailedWrites = 3;

bool HasRoomWithout(const std::string& worker, const Job& job, const Turn& turn) {
  if (ContinuesFromImages(job)) return false;  // they can be read only where they are
  ClusterView view = WithoutSetAside(ListDevicesFor(turn.fleet, job.id()), turn.fleet);
  std::erase_if(view.free_devices,
                [&](const ClusterDevice& device) { return device.worker == worker; });
  return static_cast<int>(view.free_devices.size()) >= job.plan.ranks_size() &&
         turn.options.planner.place(RunningSpec(job), job.plan, view).ok();
}

// Returns the rank to blame for its host: the first one on the worker that the message blames, else
// the sender.
int32_t BlamedRank(const Job& job, const v1::ShardFailed& message) {
  for (const v1::RankPlacement& placement : job.plan.ranks())
    if (placement.worker() == message.blamed_worker()) return placement.rank();
  return message.rank();
}

}  // namespace

Transition OnFailedWrite(Job& job, const v1::ShardFailed& message, Turn& turn) {
  FailedWrites& failed = job.failed_writes;
  if (message.cause() == cause::kFolderFull) {
    failed.folder_is_full = true;
    return {};
  }
  const int32_t rank = BlamedRank(job, message);
  const std::string& reason = message.reason();
  if (job.group->save_again_time || StopsFor(StopPurpose::kCancelAnyway, job.record)) {
    LayFailedWrite(job, rank, reason, turn);
    return {};
  }
  const std::string worker = job.plan.ranks(rank).worker();
  const int count = ++failed.counts[worker];
  if (count < kMostFailedWrites || failed.moved || !HasRoomWithout(worker, job, turn)) {
    LayFailedWrite(job, rank, reason, turn);
    return {};
  }
  failed = {.moved = true};
  // The failure that ends the group is also recorded against the host.
  return Breakdown{MakeFailure(cause::kCheckpointFailed,
                               fmt::format("its part of {} checkpoints since the newest commit "
                                           "could not be written, and other hosts are free: {}",
                                           count, reason),
                               rank, worker)};
}

}  // namespace troupe
