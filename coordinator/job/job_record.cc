#include "coordinator/job/job_record.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "coordinator/history/event_history.h"
#include "coordinator/history/step_history.h"
#include "coordinator/job/job_pace.h"

namespace troupe {

void AcknowledgeReports(const Job& job, Turn& turn) {
  v1::CoordinatorMessage message;
  v1::ReportsDurable* const durable = message.mutable_reports_durable();
  durable->set_job(job.id());
  durable->set_group_epoch(job.group->epoch);
  durable->set_step(job.durable_step);
  SendToWorker(job.plan.ranks(0).worker(), std::move(message), turn);
}

void FlushReports(Job& job, Turn& turn) {
  if (job.unflushed.empty()) return;
  job.record.set_median_step_seconds(MedianStepSeconds(job));
  const std::vector<int64_t> kept_every = {job.spec.training().validation_interval(),
                                           job.spec.training().norms_interval()};
  for (const v1::StepEvent& step : job.unflushed) {
    turn.effects.writes.PutStep(job.id(), step);
    for (const int64_t old : StepsToDrop(step.step(), kept_every)) {
      turn.effects.writes.DeleteStep(job.id(), old);
    }
  }
  turn.effects.writes.PutTally(job.id(), job.tally);
  turn.effects.writes.PutJob(job.record);
  job.durable_step = job.unflushed.back().step();
  job.unflushed.clear();
  if (job.group) AcknowledgeReports(job, turn);
}

void SaveRecord(Job& job, Turn& turn) {
  FlushReports(job, turn);
  turn.effects.writes.PutJob(job.record);
}

void RecordEvent(Job& job, std::string_view event, const std::string& message, Turn& turn) {
  const uint64_t number = job.record.last_event() + 1;
  job.record.set_last_event(number);
  v1::JobEvent row;
  row.set_event(std::string(event));
  row.set_message(message);
  row.set_step(job.record.step());
  row.set_group_epoch(job.record.group_epoch());
  // Whoever sorts events by time keeps their order within the turn: causes precede their effects.
  row.set_wall_time_ns(turn.wall_ns + static_cast<int64_t>(turn.effects.updates.size()));
  row.set_state(ShownState(job));
  const CountedEvent counted = CountEvent(row.event(), number, &job.record);
  row.set_count(counted.count);
  turn.effects.writes.PutEvent(job.id(), number, row);
  if (counted.dropped) turn.effects.writes.DeleteEvent(job.id(), *counted.dropped);
  SaveRecord(job, turn);
  JobUpdate update{job.id(), {}};
  *update.update.mutable_event() = std::move(row);
  turn.effects.updates.push_back(std::move(update));
}

}  // namespace troupe
