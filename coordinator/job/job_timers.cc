#include "coordinator/job/job_timers.h"

#include <fmt/ranges.h>

#include <set>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/failure_cause.h"
#include "coordinator/job/attempt_writers.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/doubts.h"
#include "coordinator/job/growth.h"
#include "coordinator/job/images.h"
#include "coordinator/job/job_pace.h"
#include "coordinator/job/job_record.h"
#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/job/lifecycle.h"
#include "coordinator/job/recovery.h"
#include "coordinator/job/tickets.h"
#include "coordinator/job/timed_checkpoint.h"
#include "coordinator/state/job_failure.h"

namespace troupe {
namespace {

using Due = std::optional<MonotonicTime>;

bool IsRunning(const Job& job) { return job.group && job.group->phase == GroupPhase::kRunning; }

void RequestDeletionsAgain(Job& job, Turn& turn) {
  job.delete_again_time.reset();
  if (job.record.deleting()) job.delete_again_time = turn.now + kDeleteAgainInterval;
  SendDeletions(job, turn);
}

// Ends a wait of the job, which the scheduler may place now.
void EndWait(std::optional<MonotonicTime>* waits_until, Turn& turn) {
  waits_until->reset();
  turn.reschedule = true;
}

void AllowSmallerLayout(Job& job, Turn& turn) {
  job.may_shrink = true;
  EndWait(&job.shrink_time, turn);
}

// The workers whose ranks have not been confirmed since the coordinator restarted.
std::string MissingWorkers(const Job& job) {
  std::set<std::string> missing;
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    if (!job.group->ranks[rank].held)
      missing.insert(job.plan.ranks(static_cast<int>(rank)).worker());
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

// Names the awaited ranks: those without an address, which a rank states once it has loaded, or,
// once all have one, those that are not ready. The failure names their worker if they share one.
v1::Failure LateStart(const Job& job) {
  const bool starts = job.group->phase == GroupPhase::kStarting;
  std::set<std::string> workers;
  std::vector<int> late;
  for (size_t rank = 0; rank < job.group->ranks.size(); ++rank) {
    const RankState& state = job.group->ranks[rank];
    if (starts ? !state.address.empty() : state.ready) continue;
    late.push_back(static_cast<int>(rank));
    workers.insert(job.plan.ranks(late.back()).worker());
  }
  const std::string text =
      fmt::format("not every rank was ready within {:.0f} s: these ranks {}: {}",
                  ToSeconds(job.group->start_limit),
                  starts ? "had not prepared their programs and loaded their state"
                         : "had loaded their state but were not ready",
                  fmt::join(late, ", "));
  return MakeFailure(cause::kStartTimeout, text, late.size() == 1 ? late.front() : -1,
                     workers.size() == 1 ? *workers.begin() : std::string());
}

Due PhaseEnd(const Job& job, const TimeLimits&) {
  return job.group && !IsRunning(job) ? Due(job.group->deadline) : std::nullopt;
}

void EndPhase(Job& job, Turn& turn) {
  switch (job.group->phase) {
    case GroupPhase::kAdopting:
      BreakGroup(job,
                 {MakeFailure(cause::kWorkerLost,
                              fmt::format("did not come back after the coordinator's restart: {}",
                                          MissingWorkers(job))),
                  false, false},
                 turn);
      return;
    case GroupPhase::kStarting:
    case GroupPhase::kBooked:
      BreakGroup(job, {LateStart(job), false, false}, turn);
      return;
    case GroupPhase::kDraining:
      FinalizeBreakdown(job, {FinalFailure(job, turn.options.bugs), true, false}, turn);
      return;
    case GroupPhase::kRunning:
      return;
  }
}

void EndImageTaking(Job& job, Turn& turn) {
  if (!job.group->hung_ranks.empty()) return Apply(job, CountHungSave(job), turn);
  AbandonImages(job, "not every rank has answered", turn);
}

// Whether the ranks may make no progress because they save their state.
bool MaySave(const Job& job) {
  return job.group->save_again_time || job.group->image_taking || HoldsUpRanks(job);
}

// When the first checkpoint attempt is late, or the ranks count as hung.
Due SilenceEnd(const Job& job, const TimeLimits& limits) {
  if (!IsRunning(job)) return std::nullopt;
  Due next;
  for (const auto& [number, attempt] : job.attempts)
    next = EarlierOf(next, AttemptDeadline(job, attempt, limits));
  if (MaySave(job)) return next;
  return EarlierOf(next, job.group->last_progress + HangLimitOf(job, limits));
}

// Aborts the attempts that are late. Then, unless the ranks were held up by one of these, ends a
// group that hangs.
void EndSilence(Job& job, Turn& turn) {
  const bool may_save = MaySave(job);
  std::vector<int64_t> late;
  for (const auto& [number, attempt] : job.attempts) {
    const Due deadline = AttemptDeadline(job, attempt, turn.limits());
    if (deadline && turn.now >= *deadline) late.push_back(number);
  }
  // Aborting one attempt may also abort others, or end the job.
  for (const int64_t number : late) {
    if (!job.group || !job.attempts.contains(number)) continue;
    Apply(job, AbortLateAttempt(job, number, turn), turn);
  }
  if (may_save || !IsRunning(job)) return;
  const Duration limit = HangLimitOf(job, turn.limits());
  if (turn.now < job.group->last_progress + limit) return;
  const auto text = fmt::format("no rank reported a step for {:.1f} s", ToSeconds(limit));
  BreakGroup(job, {MakeFailure(cause::kHang, text), false, false}, turn);
}

constexpr JobTimer kJobTimers[] = {
    {"report flush",
     [](const Job& job, const TimeLimits&) {
       return job.unflushed.empty() ? std::nullopt : Due(job.flush_time);
     },
     FlushReports},
    {"doubt", [](const Job& job, const TimeLimits&) { return NextDoubtDeadline(job); },
     AdvanceDoubts},
    {"deletions", [](const Job& job, const TimeLimits&) { return job.delete_again_time; },
     RequestDeletionsAgain},
    {"restart backoff", [](const Job& job, const TimeLimits&) { return job.place_not_before; },
     [](Job& job, Turn& turn) { EndWait(&job.place_not_before, turn); }},
    {"end of former ranks", [](const Job& job, const TimeLimits&) { return job.choose_time; },
     [](Job& job, Turn& turn) { EndWait(&job.choose_time, turn); }},
    {"smaller layout", [](const Job& job, const TimeLimits&) { return job.shrink_time; },
     AllowSmallerLayout},
    {"image look", [](const Job& job, const TimeLimits&) { return job.image_look_time; },
     [](Job& job, Turn& turn) { Apply(job, LookForImages(job, turn), turn); }},
    {"phase", PhaseEnd, EndPhase},
    {"repeated save",
     [](const Job& job, const TimeLimits&) {
       return IsRunning(job) ? job.group->save_again_time : std::nullopt;
     },
     [](Job& job, Turn& turn) { Apply(job, SaveAgain(job, turn), turn); }},
    {"images",
     [](const Job& job, const TimeLimits&) {
       const bool takes = IsRunning(job) && job.group->image_taking;
       return takes ? Due(job.group->image_taking->deadline) : std::nullopt;
     },
     EndImageTaking},
    {"timed checkpoint", [](const Job& job, const TimeLimits&) { return TimedCheckpointDue(job); },
     [](Job& job, Turn& turn) { RequestCheckpoint(job, turn); }},
    {"silence", SilenceEnd, EndSilence},
    {"ticket",
     [](const Job& job, const TimeLimits& limits) {
       return IsRunning(job) ? Due(TicketRenewalTime(*job.group, limits)) : std::nullopt;
     },
     GrantTicket},
    {"growth",
     [](const Job& job, const TimeLimits&) {
       return IsRunning(job) ? job.grow_time : std::nullopt;
     },
     BeginGrowth},
};

}  // namespace

std::span<const JobTimer> JobTimers() { return kJobTimers; }

void OnJobTime(Job& job, Turn& turn) {
  ForgetGoneDoubts(job);
  for (const JobTimer& timer : kJobTimers) {
    const Due due = timer.due(job, turn.limits());
    if (due && turn.now >= *due) timer.act(job, turn);
  }
}

std::optional<MonotonicTime> NextJobDeadline(const Job& job, const TimeLimits& limits) {
  Due next;
  for (const JobTimer& timer : kJobTimers) next = EarlierOf(next, timer.due(job, limits));
  return next;
}

}  // namespace troupe
