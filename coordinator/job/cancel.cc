#include "coordinator/job/cancel.h"

#include <optional>

#include "coordinator/job/attempts.h"
#include "coordinator/job/job_end.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/state/stop.h"
#include "coordinator/state/transition.h"

namespace troupe {
namespace {

bool Trains(const Job& job) {
  return job.group &&
         (job.group->phase == GroupPhase::kRunning || job.group->phase == GroupPhase::kAdopting);
}

// Whether `checkpoint` can be obeyed: a job that waits in the queue has nothing to commit.
Status CheckCanCommit(const Job& job) {
  if (!job.has_folder()) {
    return FailedPrecondition("job {} cannot checkpoint: its checkpoint.folder is empty", job.id());
  }
  if (Trains(job) || job.record.state() == v1::JOB_STATE_QUEUED) return OkStatus();
  return FailedPrecondition(
      "job {} cannot checkpoint while it is {}: cancel it without a checkpoint, or wait until it "
      "is RUNNING",
      job.id(), StateName(ShownState(job)));
}

// Has the ranks stop after a commit. REQUIRES: the job trains and has a folder.
void StopAfterCommit(Job& job, bool anyway, Turn& turn) {
  const bool weakly = anyway || StopsFor(StopPurpose::kCancelAnyway, job.record);
  const StopPurpose purpose = weakly ? StopPurpose::kCancelAnyway : StopPurpose::kCancel;
  // A final checkpoint that has failed before is tried once more, now.
  if (anyway && job.group->save_again_time) job.group->save_again_time = turn.now;
  // The ranks of a job that is to grow or to move are stopping already; it is cancelled where they
  // stop. After the last step the final checkpoint is the one to wait for.
  const int64_t attempt = StopAttempt(job.record);
  if (attempt != 0 || (anyway && job.record.step() >= job.steps())) {
    SetStop(Stop{purpose, attempt}, &job.record);
    return SaveRecord(job, turn);
  }
  StopAfterNextAttempt(purpose, &job.record);
  RequestCheckpoint(job, turn);
}

}  // namespace

void CancelJob(Job& job, const CancelJobCall& event, Turn& turn) {
  if (job.record.state() == v1::JOB_STATE_CANCELLED) return ReplyWithJob(job, event.call, turn);
  if (HasEnded(job)) {
    return ReplyWithError(
        event.call,
        FailedPrecondition("job {} has ended: it is {}", job.id(), StateName(job.record.state())),
        turn);
  }
  const bool is_strict = event.request.checkpoint();
  if (is_strict) {
    if (const Status can = CheckCanCommit(job); !can.ok())
      return ReplyWithError(event.call, can, turn);
  }
  const bool commits =
      Trains(job) && job.has_folder() && (is_strict || event.request.checkpoint_if_training());
  job.cancel_callers.push_back({event.call, is_strict && commits});
  if (commits) return StopAfterCommit(job, !is_strict, turn);
  if (!is_strict) return EndJob(job, CancelWithoutCommit(job, ""), turn);
  EndJob(job,
         {v1::JOB_STATE_CANCELLED, std::nullopt,
          "cancelled; no rank was running, so there was nothing to save"},
         turn);
}

}  // namespace troupe
