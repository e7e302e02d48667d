#include "coordinator/machine/admission.h"

#include "coordinator/state/job_state.h"
#include "coordinator/state/namespaces.h"
#include "coordinator/state/quota.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

JobUse UseOf(const CoordinatorState& state, std::string_view space, const std::string& user,
             MonotonicTime now) {
  JobUse use;
  for (const auto& [id, job] : state.jobs) {
    if (HasEnded(job)) continue;
    if (!user.empty() && job.record.creator() == user) ++use.user_jobs;
    if (NamespaceOf(id) != space) continue;
    ++use.jobs;
    if (job.record.state() == v1::JOB_STATE_QUEUED) ++use.queued;
  }
  const auto submissions = state.submissions.find(space);
  if (submissions != state.submissions.end()) use.submissions = submissions->second.CountAt(now);
  return use;
}

}  // namespace

Status CheckAdmission(const CoordinatorState& state, const std::string& job_id,
                      const std::string& user, MonotonicTime now) {
  const Namespaces* const namespaces = state.options.namespaces.get();
  if (namespaces == nullptr && user.empty()) return OkStatus();
  const JobUse use = UseOf(state, NamespaceOf(job_id), user, now);
  TROUPE_RETURN_IF_ERROR(CheckUserJobs(user, use, state.options.most_user_jobs));
  if (namespaces == nullptr) return OkStatus();
  TROUPE_RETURN_IF_ERROR(CheckExists(*namespaces, job_id));
  return CheckQuota(*namespaces->FindOf(job_id), use);
}

void CountSubmission(const std::string& job_id, MonotonicTime now, CoordinatorState* state) {
  const Namespaces* const namespaces = state->options.namespaces.get();
  const v1::Namespace* const space = namespaces == nullptr ? nullptr : namespaces->FindOf(job_id);
  if (space == nullptr || !space->quota().has_submissions_per_minute()) return;
  state->submissions[space->name()].Add(now);
}

}  // namespace troupe
