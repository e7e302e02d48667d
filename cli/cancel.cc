#include "cli/cancel.h"

#include <algorithm>
#include <string>

#include "base/program/program.h"
#include "cli/watch.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

bool IsTraining(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING || job.state() == v1::JOB_STATE_CHECKPOINTING;
}

bool LosesSteps(const v1::Job& job) {
  int64_t kept = 0;
  for (const v1::CheckpointRecord& record : job.checkpoints()) {
    if (record.state() == v1::CHECKPOINT_STATE_COMMITTED) kept = std::max(kept, record.step());
  }
  return job.state() == v1::JOB_STATE_CANCELLED && job.step() > kept;
}

}  // namespace

StatusOr<std::optional<v1::Job>> CancelJob(Client* client, InterruptWatch* interrupt,
                                           const v1::CancelJobRequest& request) {
  const std::string& name = request.name();
  if (request.checkpoint_if_training()) {
    const StatusOr<v1::Job> job = client->GetJob(name);  // the cancel reports its errors too
    if (job.ok() && IsTraining(*job) && !job->spec().checkpoint().folder().empty()) {
      PrintMessage("{} commits a checkpoint first; Ctrl-C detaches, --now does not wait for it\n",
                   name);
    }
  }
  const bool waits = request.checkpoint() || request.checkpoint_if_training();
  StatusOr<v1::CancelJobResponse> cancelled = client->Call<v1::CancelJobResponse>(
      Client::Repeat::kSafe, waits ? Client::kCheckpointLimit : Client::kCallLimit,
      [&](auto* context, auto* response) {
        const CancelOnInterrupt detaches(interrupt, context);
        return client->jobs().CancelJob(context, request, response);
      });
  if (!cancelled.ok() && waits && interrupt->interrupted()) {
    PrintMessage(
        "detached; {} ends after its checkpoint. To end it at once: troupe cancel --now {}\n", name,
        JobId(name));
    return std::optional<v1::Job>();
  }
  TROUPE_RETURN_IF_ERROR(cancelled.status());
  const v1::Job& job = cancelled->job();
  if (LosesSteps(job)) PrintMessage("{}: {}\n", name, ReadEndMessage(client, job));
  return std::optional<v1::Job>(job);
}

}  // namespace troupe
