#include "coordinator/kubernetes/reconcile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text/printable.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

constexpr size_t kMostMessageBytes = 4096;

bool IsEndState(std::string_view state) {
  for (const v1::JobState end :
       {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED}) {
    if (state == StateName(end)) return true;
  }
  return false;
}

// Whether the coordinator writes the condition. Others may write conditions of other types.
bool IsOwn(const Condition& condition) {
  return condition.type == kAcceptedCondition || condition.type == kSuspendedCondition ||
         condition.type == kFinishedCondition;
}

// Whether the object had a job that the catalog has no more.
bool HasLostJob(const TroupeJob& object, const JobFacts* job) {
  return job == nullptr && !object.status.job_name.empty();
}

// Whether the job was stopped because the object asked for it, and not by somebody else.
bool IsSuspended(const TroupeJob& object, const JobFacts& job) {
  return job.state == v1::JOB_STATE_CANCELLED &&
         (object.suspend || object.status.Holds(kSuspendedCondition));
}

std::string StateOf(const TroupeJob& object, const JobFacts* job, const Refusal* refusal) {
  if (job != nullptr && job->is_moving) return std::string(kMoving);
  if (job != nullptr)
    return IsSuspended(object, *job) ? std::string(kSuspended) : StateName(job->state);
  if (HasLostJob(object, job)) {
    // Old jobs that have ended leave the catalog.
    return IsEndState(object.status.state) ? object.status.state : std::string(kDeleted);
  }
  if (object.suspend) return std::string(kSuspended);
  return std::string(refusal != nullptr && refusal->is_final ? kRejected : kPending);
}

Condition MakeCondition(std::string_view type, std::string_view status, std::string_view reason,
                        std::string_view message) {
  return {std::string(type), std::string(status), std::string(reason), std::string(message), ""};
}

Condition AcceptedOf(const TroupeJob& object, const JobFacts* job, const Refusal* refusal) {
  const auto make = [](std::string_view status, std::string_view reason, std::string_view message) {
    return MakeCondition(kAcceptedCondition, status, reason, message);
  };
  const std::string dropped = DroppedText(object);
  const std::string end = dropped.empty() ? "" : "; " + dropped;
  if (job != nullptr)
    return make("True", "Created", fmt::format("the job is {}{}", job->name, end));
  if (HasLostJob(object, job)) {
    return make("True", "Created",
                fmt::format("the job was {}, and the catalog has it no more: apply the object "
                            "under another name for a new job",
                            object.status.job_name));
  }
  if (refusal != nullptr)
    return make("False", refusal->is_final ? "Rejected" : "Refused", refusal->message);
  return make("Unknown", object.suspend ? "Suspended" : "Pending", "no job was created yet" + end);
}

// With keys that were dropped the job would not be the one that the user stated.
std::string NotCreatedText(const TroupeJob& object) {
  const std::string dropped = DroppedText(object);
  if (dropped.empty()) return "the job is created when it is resumed";
  return "the job is rejected when it is resumed: " + dropped;
}

Condition SuspendedOf(const TroupeJob& object, const JobFacts* job, const Refusal* refusal) {
  const auto make = [](std::string_view status, std::string_view reason, std::string_view message) {
    return MakeCondition(kSuspendedCondition, status, reason, message);
  };
  const std::string_view error = refusal == nullptr ? "" : std::string_view(refusal->message);
  const bool was = object.status.Holds(kSuspendedCondition);
  if (object.suspend) {
    if (HasLostJob(object, job)) return make("True", "Deleted", "the catalog has the job no more");
    if (job == nullptr) return make("True", "NotCreated", NotCreatedText(object));
    if (job->state == v1::JOB_STATE_CANCELLED) return make("True", "Stopped", "the job is stopped");
    if (HasEnded(job->state)) return make(was ? "True" : "False", "Ended", "the job has ended");
    return make("True", "Stopping", error.empty() ? "the job is being stopped" : error);
  }
  // A stop that was asked for goes on; the job is resumed after it.
  const bool resumes =
      was && job != nullptr && (job->is_stopping || job->state == v1::JOB_STATE_CANCELLED);
  if (resumes) return make("True", "Resuming", error.empty() ? "the job will be resumed" : error);
  return make("False", "NotRequested", "");
}

// Returns the reason for which the job does not train.
std::string DelayText(const JobFacts& job) {
  std::string text = job.is_moving ? job.move_reason : "";
  if (job.waiting_for.empty()) return text;
  return fmt::format("{}{}waits for {}", text, text.empty() ? "" : "; ", job.waiting_for);
}

Condition FinishedOf(const TroupeJob& object, const JobFacts* job) {
  const auto make = [](std::string_view status, std::string_view reason, std::string_view message) {
    return MakeCondition(kFinishedCondition, status, reason, message);
  };
  if (job == nullptr || !HasEnded(job->state) || IsSuspended(object, *job)) {
    return make("False", "NotFinished", job == nullptr ? "" : DelayText(*job));
  }
  switch (job->state) {
    case v1::JOB_STATE_SUCCEEDED:
      return make("True", "Succeeded", "");
    case v1::JOB_STATE_FAILED:
      return make("True", "Failed", job->failure);
    default:
      return make("True", "Cancelled", "");
  }
}

// A step without a target has no loss.
std::string LossText(double loss) { return std::isnan(loss) ? "NaN" : fmt::format("{:.6g}", loss); }

// The figures that are not read keep the values of the same step.
void AddFigures(const TroupeJobStatus& former, const JobFacts& job, TroupeJobStatus* status) {
  const bool is_same_step = former.step == job.step;
  status->step = job.step;
  status->steps = job.steps;
  status->restarts = job.restarts;
  if (job.remaining_seconds) status->remaining_seconds = std::llround(*job.remaining_seconds);
  status->loss = job.loss ? LossText(*job.loss) : is_same_step ? former.loss : "";
  status->mfu = job.mfu ? fmt::format("{:.4g}", *job.mfu) : is_same_step ? former.mfu : "";
  status->last_checkpoint = job.last_checkpoint;
}

// Shows the texts that others chose, which kubectl prints as they are and a terminal obeys.
void ShowTexts(TroupeJobStatus* status) {
  for (Condition& condition : status->conditions)
    condition.message = Shorten(PrintableLine(condition.message), kMostMessageBytes);
  status->last_checkpoint = PrintableLine(status->last_checkpoint);
}

TroupeJobStatus DesiredStatus(const TroupeJob& object, const JobFacts* job,
                              const Refusal* refusal) {
  TroupeJobStatus status;
  if (HasLostJob(object, job) && IsEndState(object.status.state)) {
    status = object.status;  // the last that was known of it
    std::erase_if(status.conditions, [](const Condition& condition) { return !IsOwn(condition); });
  } else {
    status.job_name = job == nullptr ? object.status.job_name : job->name;
    if (job != nullptr) AddFigures(object.status, *job, &status);
    status.conditions = {AcceptedOf(object, job, refusal), SuspendedOf(object, job, refusal),
                         FinishedOf(object, job)};
    status.state = StateOf(object, job, refusal);
  }
  status.observed_generation = object.generation;
  ShowTexts(&status);
  return status;
}

// Stops the job, unless it is stopping already.
void Stop(const JobFacts& job, bool aborts, Decision* decision) {
  if (job.is_stopping && !aborts) return;
  decision->act = Act::kCancel;
  // A job without ranks has nothing that a checkpoint could save.
  decision->checkpoint = !aborts && job.has_folder && job.has_ranks;
}

void DecideDeletion(const TroupeJob& object, const JobFacts* job, Decision* decision) {
  if (job != nullptr && HasEnded(job->state)) {
    decision->act = Act::kDelete;
  } else if (object.has_finalizer() && job != nullptr) {
    Stop(*job, object.aborts, decision);
  } else if (object.has_finalizer()) {
    decision->act = Act::kRemoveFinalizer;
  }
}

void DecideSuspension(const JobFacts& job, Decision* decision) {
  Stop(job, false, decision);
  // Without a folder, only the refusal of a checkpoint keeps the progress.
  if (decision->act == Act::kCancel && job.has_ranks) decision->checkpoint = true;
  decision->record_first = decision->act == Act::kCancel;
}

bool MayCreate(const TroupeJob& object, const JobFacts* job, const Refusal* refusal) {
  const bool is_rejected = refusal != nullptr && refusal->is_final && refusal->waits;
  return job == nullptr && !HasLostJob(object, job) && !object.suspend && !is_rejected;
}

void DecideWish(const TroupeJob& object, const JobFacts* job, const Refusal* refusal,
                Decision* decision) {
  const bool is_active = job != nullptr && !HasEnded(job->state);
  const bool creates = MayCreate(object, job, refusal);
  const bool resumes = job != nullptr && job->state == v1::JOB_STATE_CANCELLED && !object.suspend &&
                       object.status.Holds(kSuspendedCondition);
  const bool must_wait = is_active || creates || resumes;
  if (must_wait != object.has_finalizer()) {
    decision->act = must_wait ? Act::kAddFinalizer : Act::kRemoveFinalizer;
  } else if (is_active && object.suspend) {
    DecideSuspension(*job, decision);
  } else if (creates) {
    decision->act = Act::kCreate;
    decision->record_first = true;
  } else if (resumes) {
    decision->act = Act::kResume;
  }
}

}  // namespace

Decision Reconcile(const TroupeJob& object, const JobFacts* job, const Refusal* refusal) {
  if (job != nullptr && job->is_removed) {
    TroupeJob named = object;
    named.status.job_name = job->name;
    return Reconcile(named, nullptr, nullptr);
  }
  Decision decision;
  decision.status = DesiredStatus(object, job, refusal);
  if (object.is_deleted) {
    DecideDeletion(object, job, &decision);
  } else {
    DecideWish(object, job, refusal, &decision);
  }
  return decision;
}

bool DiffersInState(const TroupeJobStatus& wanted, const TroupeJobStatus& recorded) {
  return wanted.observed_generation != recorded.observed_generation ||
         wanted.state != recorded.state || wanted.job_name != recorded.job_name ||
         wanted.restarts != recorded.restarts ||
         !std::ranges::all_of(wanted.conditions, [&recorded](const Condition& condition) {
           const Condition* const found = recorded.Find(condition.type);
           return found != nullptr && condition.SameAs(*found);
         });
}

bool Differs(const TroupeJobStatus& wanted, const TroupeJobStatus& recorded) {
  return DiffersInState(wanted, recorded) || wanted.step != recorded.step ||
         wanted.steps != recorded.steps || wanted.loss != recorded.loss ||
         wanted.mfu != recorded.mfu || wanted.remaining_seconds != recorded.remaining_seconds ||
         wanted.last_checkpoint != recorded.last_checkpoint ||
         !std::ranges::all_of(wanted.conditions, [&recorded](const Condition& condition) {
           return condition.message == recorded.Find(condition.type)->message;
         });
}

}  // namespace troupe
