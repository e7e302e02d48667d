#include "coordinator/job/deletion.h"

#include <algorithm>
#include <utility>

#include "coordinator/job/images.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

bool RanksMayLive(const Job& job, const Fleet& fleet) {
  return std::any_of(fleet.leases.begin(), fleet.leases.end(),
                     [&](const auto& entry) { return entry.second.job() == job.id(); });
}

bool DeleterIsConnected(const Job& job, const Fleet& fleet) {
  if (job.last_group.ranks_size() == 0) return false;
  const Worker* const worker = FindWorker(job.last_group.ranks(0).worker(), fleet);
  return worker != nullptr && worker->session != 0;
}

int64_t EndOf(const Job& job) {
  return job.record.end_wall_time_ns() != 0 ? job.record.end_wall_time_ns()
                                            : job.record.create_wall_time_ns();
}

}  // namespace

Status CheckDeletable(const Job& job, bool checkpoints, const Fleet& fleet) {
  if (!HasEnded(job)) {
    return FailedPrecondition("job {} is {}: cancel it first", job.id(),
                              StateName(ShownState(job)));
  }
  if (RanksMayLive(job, fleet)) {
    return FailedPrecondition("job {} is {}, and one of its ranks may still be running: try again",
                              job.id(), StateName(ShownState(job)));
  }
  if (!checkpoints || job.checkpoints.empty()) return OkStatus();
  for (const auto& [number, record] : job.checkpoints) {
    if (record.pinned()) {
      return FailedPrecondition("the checkpoint of step {} of job {} is pinned: {}", record.step(),
                                job.id(), record.path());
    }
  }
  if (job.last_group.ranks_size() == 0) {
    return FailedPrecondition("no known worker ran job {} and could delete its checkpoints",
                              job.id());
  }
  return OkStatus();
}

bool BeginDeletion(Job& job, bool checkpoints, Turn& turn) {
  // Only this job could continue from its images.
  if (job.images.images_size() > 0) DropImages(job, turn);
  if (checkpoints) {
    for (auto& [number, record] : job.checkpoints) {
      record.set_state(v1::CHECKPOINT_STATE_DELETING);
      turn.effects.writes.PutCheckpoint(record);
    }
  } else {
    // A repeated request no longer waits for files.
    if (job.record.deleting()) return true;
    if (!DeleterIsConnected(job, turn.fleet)) return true;
  }
  if (CountToRemove(job) == 0) return true;
  job.record.set_deleting(true);
  job.delete_again_time = turn.now + kDeleteAgainInterval;
  SaveRecord(job, turn);
  SendDeletions(job, turn);
  return false;
}

int64_t CountToRemove(const Job& job) {
  return std::ranges::count_if(job.checkpoints, [](const auto& entry) {
    const v1::CheckpointState state = entry.second.state();
    return state == v1::CHECKPOINT_STATE_ABORTED || state == v1::CHECKPOINT_STATE_DELETING;
  });
}

bool RemovesCommits(const Job& job) {
  return std::ranges::any_of(job.checkpoints,
                             [](const auto& entry) {
                               return entry.second.state() == v1::CHECKPOINT_STATE_DELETING;
                             }) &&
         CountToRemove(job) == static_cast<int64_t>(job.checkpoints.size());
}

std::vector<std::string> EndedJobsToDrop(const std::map<std::string, Job>& jobs, const Fleet& fleet,
                                         const KeepEnded& keep, int64_t wall_ns) {
  std::vector<std::pair<int64_t, std::string>> ended;
  for (const auto& [id, job] : jobs) {
    const bool goes = HasEnded(job) && !job.record.deleting() && !ContinuesFromImages(job);
    if (goes) ended.emplace_back(EndOf(job), id);
  }
  std::sort(ended.begin(), ended.end());
  std::vector<std::string> dropped;
  for (size_t i = 0; i < ended.size(); ++i) {
    const auto& [end, id] = ended[i];
    const bool too_many = keep.count && ended.size() - i > static_cast<size_t>(*keep.count);
    const bool too_old =
        keep.age &&
        wall_ns - end > std::chrono::duration_cast<std::chrono::nanoseconds>(*keep.age).count();
    if (!too_many && !too_old) continue;
    if (!RanksMayLive(jobs.at(id), fleet)) dropped.push_back(id);
  }
  return dropped;
}

}  // namespace troupe
