#include "coordinator/job/job_end.h"

#include <string>
#include <utility>

#include "coordinator/job/attempts.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/state/stop.h"

namespace troupe {
namespace {

void AnswerCancel(const Job& job, const CancelCaller& caller, const JobEnd& end, Turn& turn) {
  const std::string lost = caller.needs_commit ? LostStepsText(job) : "";
  if (lost.empty()) return ReplyWithJob(job, caller.call, turn);
  ReplyWithError(caller.call,
                 Aborted("job {} has ended without the checkpoint that was asked for: {} {}",
                         job.id(), StateName(end.state), end.message),
                 turn);
}

}  // namespace

void EndJob(Job& job, const JobEnd& end, Turn& turn) {
  FlushReports(job, turn);
  DropAttempts(job, "the job ended", turn);
  SendDeletions(job, turn);
  if (job.group) {
    v1::CoordinatorMessage stop;
    stop.mutable_stop_ranks()->set_job(job.id());
    stop.mutable_stop_ranks()->set_group_epoch(job.group->epoch);
    stop.mutable_stop_ranks()->set_reason(StateName(end.state));
    stop.mutable_stop_ranks()->set_finished(end.state == v1::JOB_STATE_SUCCEEDED);
    SendToGroup(job, stop, turn);
    DropLeftImages(job, turn);
    job.group.reset();
  }
  job.record.set_state(end.state);
  job.record.set_end_wall_time_ns(turn.wall_ns);
  job.record.clear_failure();
  if (end.failure) *job.record.mutable_failure() = *end.failure;
  job.waiting_for.clear();
  job.place_not_before.reset();
  job.choose_time.reset();
  job.shrink_time.reset();
  job.may_shrink = false;
  job.grow_time.reset();
  SetStop(std::nullopt, &job.record);
  job.record.set_recovering(false);
  RecordEvent(job, StateName(end.state), end.message, turn);
  JobUpdate update{job.id(), {}};
  update.update.set_end(end.state);
  turn.effects.updates.push_back(std::move(update));
  for (const CancelCaller& caller : std::exchange(job.cancel_callers, {}))
    AnswerCancel(job, caller, end, turn);
  turn.reschedule = true;
}

}  // namespace troupe
