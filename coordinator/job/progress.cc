#include "coordinator/job/progress.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/faults/hang_limit.h"
#include "coordinator/faults/restart_budget.h"
#include "coordinator/history/receipt_tally.h"
#include "coordinator/history/step_history.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/tickets.h"
#include "coordinator/state/event_kind.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/transition.h"
#include "plan/cost/checkpoint_write.h"
#include "plan/cost/slowest_step.h"

namespace troupe {
namespace {

constexpr size_t kMedianSteps = 31;
// Minimum time between events about skipped steps.
constexpr Duration kSkipEventInterval = std::chrono::seconds(10);

// Adds what the coordinator knows of the step to rank 0's event.
v1::StepEvent StepEventOf(const Job& job, const v1::StepReport& report, double model_flops,
                          double peak_flops) {
  v1::StepEvent step = report.event();
  step.set_step(report.step());
  step.set_step_seconds(report.step_seconds());
  step.set_group_epoch(report.group_epoch());
  if (report.step_seconds() > 0) {
    step.set_tokens_per_second(static_cast<double>(step.tokens()) / report.step_seconds());
  }
  if (peak_flops > 0) step.set_mfu(model_flops / peak_flops);
  if (job.spec.model().has_capacity_factor() && report.routed_choices() > 0) {
    step.set_dropped_fraction(static_cast<double>(report.dropped_choices()) /
                              static_cast<double>(report.routed_choices()));
  }
  return step;
}

double ModelFlops(const Job& job, const v1::StepReport& report) {
  return report.model_flops() > 0 ? report.model_flops() : job.plan.model_flops_per_step();
}

// Handles a rank's report that it takes part in `attempt`, or in none (0).
void NoteWriting(Job& job, int64_t attempt, Turn& turn) {
  const auto found = job.attempts.find(attempt);
  if (found == job.attempts.end() || found->second.begun) return;
  found->second.begun = true;
  found->second.begun_time = turn.now;
}

// Records an event that names what was not finite. Of many skipped steps in a short time only the
// first gets an event; the next event states the number of the others.
void NoteSkipped(Job& job, const v1::StepReport& report, Turn& turn) {
  ++job.skipped_since;
  if (job.skip_event_time && turn.now < *job.skip_event_time + kSkipEventInterval) return;
  const std::string others =
      job.skipped_since > 1 ? fmt::format("; {} other steps were skipped since the last such event",
                                          job.skipped_since - 1)
                            : "";
  RecordEvent(job, event::kStepSkipped,
              fmt::format("step {}: {}{}", report.step(), report.nonfinite(), others), turn);
  job.skip_event_time = turn.now;
  job.skipped_since = 0;
}

// Handles rank 0's report, which has the figures of the whole step.
Transition OnGlobalReport(Job& job, const v1::StepReport& report, Turn& turn) {
  Group& group = *job.group;
  // The first step of an epoch includes warm-up, so its time is no measure of the pace.
  const bool steady = !group.first_report || job.step_seconds.empty();
  if (report.step_seconds() > 0 && std::isfinite(report.step_seconds()) && steady) {
    job.step_seconds.push_back(report.step_seconds());
    if (job.step_seconds.size() > kMedianSteps) job.step_seconds.pop_front();
    if (!group.first_report) group.recent_step_seconds.push_back(report.step_seconds());
    if (group.recent_step_seconds.size() > kMedianSteps) group.recent_step_seconds.pop_front();
  }
  group.first_report = false;
  ++group.steps_seen;
  job.record.set_step(report.step());
  const bool repeated = report.step() <= job.record.highest_step();
  if (!repeated) {
    job.record.set_highest_step(report.step());
    RenewBudget(&job.record);
    job.delayed_recoveries = 0;
  }
  const double model_flops = ModelFlops(job, report);
  const double peak_flops =
      report.step_seconds() > 0 ? group.peak_flops * report.step_seconds() : 0;
  v1::StepEvent step = StepEventOf(job, report, model_flops, peak_flops);
  step.set_wall_time_ns(turn.wall_ns);
  job.last_loss = StepLossOf(step);
  turn.effects.measurements.push_back(StepMeasured{
      job.id(), step, model_flops, job.plan.recomputed_flops_per_step(), peak_flops, repeated});
  JobUpdate update{job.id(), {}};
  *update.update.mutable_step() = step;
  turn.effects.updates.push_back(std::move(update));
  if (job.unflushed.empty()) job.flush_time = turn.now + turn.limits().report_flush;
  job.unflushed.push_back(std::move(step));

  if (report.event().skipped()) NoteSkipped(job, report, turn);
  NoteWriting(job, report.checkpoint_attempt(), turn);
  SkipPassedIntents(job, report.step(), turn);
  if (IsFinished(job)) return Success(job);
  if (group.phase != GroupPhase::kRunning) return {};
  SaveAgainIfUnsaved(job, turn);
  RenewTicket(job, turn);
  return {};
}

}  // namespace

Transition OnStepReport(Job& job, const v1::StepReport& report, Turn& turn) {
  Group& group = *job.group;
  if (group.phase == GroupPhase::kStarting || group.phase == GroupPhase::kBooked) return {};
  RankState& rank = group.ranks[static_cast<size_t>(report.rank())];
  if (report.step() <= rank.reported_step) {
    if (report.rank() == 0 && report.step() <= job.durable_step) AcknowledgeReports(job, turn);
    return {};
  }
  if (report.step() > job.steps()) return {};
  rank.reported_step = report.step();
  rank.writing_attempt = report.writing_attempt();
  NoteWriting(job, report.writing_attempt(), turn);
  group.last_progress = turn.now;
  turn.effects.measurements.push_back(RankMeasured{job.id(), report});
  TallyStep(report, ModelFlops(job, report), group.peak_flops, &job);
  return report.rank() == 0 ? OnGlobalReport(job, report, turn) : Transition();
}

}  // namespace troupe
