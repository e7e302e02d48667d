#include "cli/cancel_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/program/program.h"
#include "cli/watch.h"
#include "plan/job/job_name.h"
#include "plan/job/job_rules.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

// Limit of the look at a job after Ctrl-C.
constexpr std::chrono::seconds kLookLimit{5};

bool IsTraining(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_CHECKPOINTING;
}

// Whether a checkpoint is open, and not for a move. The one after which a job is cancelled is open
// from the call on.
bool IsSaving(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_CHECKPOINTING && job.moving().empty();
}

bool LosesSteps(const v1::Job& job) {
  int64_t kept = 0;
  for (const v1::CheckpointRecord& record : job.checkpoints()) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED) kept = std::max(kept, record.step());
  }
  return job.state() == v1::JOB_STATE_CANCELLED && job.step() > kept;
}

// Returns the job as it is before a cancel that waits for a checkpoint, and announces that wait on
// stderr. CANCELLED at Ctrl-C.
StatusOr<v1::Job> LookBeforeCancel(Client* client, InterruptWatch* interrupt,
                                   const v1::CancelJobRequest& request) {
  v1::GetJobRequest get;
  get.set_name(request.name());
  TROUPE_ASSIGN_OR_RETURN(
      v1::GetJobResponse found,
      client->Call<v1::GetJobResponse>(Client::Repeat::kSafe, Client::kCallLimit,
                                       [&](auto* context, auto* response) {
                                         const CancelOnInterrupt ends(interrupt, context);
                                         return client->jobs().GetJob(context, get, response);
                                       }));
  v1::Job job = std::move(*found.mutable_job());
  const bool commits = IsTraining(job) && HasCheckpointFolder(job.spec());
  if (commits && request.checkpoint_if_training()) {
    PrintMessage(
        "{} is to commit a checkpoint first; Ctrl-C detaches, --now does not wait for it\n",
        request.name());
  }
  return job;
}

// Returns what is known about the job after a cancel without an answer. `may_be_other`: a
// checkpoint that it writes now may be another one than that of the cancel.
std::string TextAfterCancel(Client* client, const v1::CancelJobRequest& request,
                            bool may_be_other) {
  const std::string& name = request.name();
  const StatusOr<v1::Job> job = client->GetJob(name, kLookLimit);
  if (job.ok() && IsEndState(job->state())) return fmt::format("{} is {}", name, StateText(*job));
  if (job.ok() && IsSaving(*job) && !may_be_other) {
    return fmt::format("{} ends after its checkpoint{}. To end it at once: troupe cancel --now {}",
                       name, request.checkpoint() ? ", if that can be committed" : "", JobId(name));
  }
  const std::string seen = job.ok() ? "it is " + StateText(*job) : ToString(job.status());
  return fmt::format("{} may not have been cancelled: {}. To look again: troupe describe {}", name,
                     seen, JobId(name));
}

}  // namespace

StatusOr<std::optional<v1::Job>> CancelAndWait(Client* client, InterruptWatch* interrupt,
                                               const v1::CancelJobRequest& request) {
  const std::string& name = request.name();
  const bool waits = request.checkpoint() || request.checkpoint_if_training();
  bool may_be_other = !waits;
  if (waits) {
    // The cancel reports its errors too.
    const StatusOr<v1::Job> job = LookBeforeCancel(client, interrupt, request);
    may_be_other = !job.ok() || IsSaving(*job);
  }
  bool is_sent = false;
  StatusOr<v1::CancelJobResponse> cancelled = Cancelled("interrupted");
  if (!interrupt->interrupted()) {
    cancelled = client->Call<v1::CancelJobResponse>(
        Client::Repeat::kSafe, waits ? Client::kCheckpointLimit : Client::kCallLimit,
        [&](auto* context, auto* response) {
          // After Ctrl-C the call is cancelled before gRPC sends anything of it.
          is_sent |= !interrupt->interrupted();
          const CancelOnInterrupt detaches(interrupt, context);
          return client->jobs().CancelJob(context, request, response);
        });
  }
  const Status& status = cancelled.status();
  if (interrupt->interrupted() && !is_sent) {
    PrintMessage("interrupted; {} is not cancelled\n", name);
    return std::optional<v1::Job>();
  }
  if (interrupt->interrupted() && status.code() == StatusCode::kCancelled) {
    PrintMessage("interrupted; {}\n", TextAfterCancel(client, request, may_be_other));
    return std::optional<v1::Job>();
  }
  if (status.code() == StatusCode::kDeadlineExceeded) {
    // In all that time the call has arrived.
    return OfCoordinator(
        DeadlineExceeded("{}; {}", Message(status), TextAfterCancel(client, request, !waits)));
  }
  TROUPE_RETURN_IF_ERROR(status);
  const v1::Job& job = cancelled->job();
  if (LosesSteps(job)) PrintMessage("{}: {}\n", name, ReadEndMessage(client, job));
  return std::optional<v1::Job>(job);
}

}  // namespace troupe
