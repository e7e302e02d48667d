#include "coordinator/job/tickets.h"

#include <algorithm>
#include <cmath>

#include "coordinator/job/attempt_messages.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/job_messages.h"
#include "coordinator/job/job_pace.h"

namespace troupe {
namespace {

// The window before any step was measured; reports renew it long before it is used up.
constexpr int64_t kFirstWindowSteps = 4096;
constexpr int64_t kMaxWindowSteps = 1 << 20;
// A window ends early at this number of due checkpoints, so that a ticket stays small.
constexpr size_t kMaxIntents = 256;

}  // namespace

v1::CoordinatorMessage TicketOf(const Job& job, const TimeLimits& limits) {
  v1::CoordinatorMessage message;
  v1::Ticket* const ticket = message.mutable_ticket();
  ticket->set_job(job.id());
  ticket->set_group_epoch(job.group->epoch);
  ticket->set_end_step(job.group->ticket_end);
  ticket->set_lifetime_seconds(ToSeconds(limits.ticket_lifetime));
  for (const auto& [number, attempt] : job.attempts) {
    if (!attempt.asked) *ticket->add_intents() = IntentOf(job, attempt);
  }
  return message;
}

void GrantTicket(Job& job, Turn& turn) {
  Group& group = *job.group;
  const int64_t base = job.record.step();
  const double step_seconds = MedianStepSeconds(job);
  int64_t window = kFirstWindowSteps;
  if (step_seconds > 0) {
    const double steps = std::ceil(ToSeconds(turn.limits().ticket_window) / step_seconds);
    window = static_cast<int64_t>(std::clamp(steps, 1.0, static_cast<double>(kMaxWindowSteps)));
  }
  int64_t end = std::max(group.ticket_end, std::min(job.steps(), base + window));
  if (job.has_folder()) {
    const int64_t interval = job.spec.checkpoint().interval();
    int64_t step = group.ticket_end;  // intents up to here are already recorded
    if (step < base) step = base;
    while (step < end) {
      step = interval > 0 ? std::min(job.steps(), (step / interval + 1) * interval) : job.steps();
      if (step > end) break;
      const bool recorded =
          std::any_of(job.attempts.begin(), job.attempts.end(), [step](const auto& entry) {
            return !entry.second.asked && entry.second.record.step() == step;
          });
      if (recorded) continue;
      if (job.attempts.size() >= kMaxIntents) {
        end = std::max(group.ticket_end, step - 1);
        break;
      }
      RecordIntent(job, step, turn);
    }
  }
  group.ticket_begin = base;
  group.ticket_end = end;
  group.ticket_time = turn.now;
  turn.effects.failpoints_after.push_back("catalog.ticket.recorded");
  SendToGroup(job, TicketOf(job, turn.limits()), turn);
}

void RenewTicket(Job& job, Turn& turn) {
  const Group& group = *job.group;
  const bool half_used =
      group.ticket_end < job.steps() &&
      job.record.step() >= group.ticket_begin + (group.ticket_end - group.ticket_begin) / 2;
  // Avoids a request at every step if the ticket could not grow because it has many intents.
  const bool moved = job.record.step() > group.ticket_begin;
  if ((half_used && moved) || turn.now >= TicketRenewalTime(group, turn.limits()))
    GrantTicket(job, turn);
}

MonotonicTime TicketRenewalTime(const Group& group, const TimeLimits& limits) {
  return group.ticket_time + limits.ticket_lifetime / 2;
}

}  // namespace troupe
