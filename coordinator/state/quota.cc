#include "coordinator/state/quota.h"

#include <algorithm>

#include "base/text/count_text.h"
#include "plan/job/job_name.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

// `jobs`: the jobs of the namespace that count, such as "4 queued jobs".
Status Exceeds(const v1::Namespace& space, const std::string& jobs, std::string_view quota,
               int64_t most) {
  return ResourceExhausted("the namespace {} has {}, and its quota.{} is {}", space.name(), jobs,
                           quota, most);
}

}  // namespace

Status CheckQuota(const v1::Namespace& space, const JobUse& use) {
  const v1::Quota& quota = space.quota();
  if (quota.has_jobs() && use.jobs >= quota.jobs())
    return Exceeds(space, CountText(use.jobs, "job that has not ended", "jobs that have not ended"),
                   "jobs", quota.jobs());
  if (quota.has_queued() && use.queued >= quota.queued())
    return Exceeds(space, CountText(use.queued, "queued job"), "queued", quota.queued());
  if (quota.has_submissions_per_minute() && use.submissions >= quota.submissions_per_minute()) {
    return ResourceExhausted(
        "{} submitted in the namespace {} within the last minute, and its "
        "quota.submissions_per_minute is {}",
        CountText(use.submissions, "job was", "jobs were"), space.name(),
        quota.submissions_per_minute());
  }
  return OkStatus();
}

Status CheckUserJobs(std::string_view user, const JobUse& use, int64_t most) {
  if (user.empty() || use.user_jobs < most) return OkStatus();
  return ResourceExhausted(
      "{} has {}, and the limit of a user is {} (--most-user-jobs)", user,
      CountText(use.user_jobs, "job that has not ended", "jobs that have not ended"), most);
}

Status CheckFits(const v1::Namespace& space, const v1::JobSpec& spec, int ranks) {
  const v1::Quota& quota = space.quota();
  Violations violations;
  if (quota.has_devices() && ranks > quota.devices()) {
    violations.Add("parallelism", "needs {}, above quota.devices = {} of the namespace {}",
                   CountText(ranks, "device"), quota.devices(), space.name());
  }
  if (quota.has_priority() && spec.priority() > quota.priority()) {
    violations.AddTooLarge(
        "priority", spec.priority(),
        fmt::format("quota.priority = {} of the namespace {}", quota.priority(), space.name()));
  }
  return violations.ToStatus();
}

int64_t SubmissionTimes::CountAt(MonotonicTime now) const {
  return std::ranges::count_if(times_,
                               [now](MonotonicTime time) { return now - time < kSubmissionTime; });
}

void SubmissionTimes::Add(MonotonicTime now) {
  while (!times_.empty() && now - times_.front() >= kSubmissionTime) times_.pop_front();
  times_.push_back(now);
}

DeviceUse::DeviceUse(const Fleet& fleet, const std::map<std::string, Job>& jobs) {
  for (const auto& [key, lease] : fleet.leases) {
    const auto job = jobs.find(lease.job());
    const bool is_present =
        job != jobs.end() && job->second.group && job->second.group->epoch == lease.group_epoch();
    if (!is_present) continue;
    ++by_namespace_[std::string(NamespaceOf(lease.job()))];
    ++by_job_[lease.job()];
  }
}

int64_t DeviceUse::OfOthers(const std::string& job_id) const {
  const auto all = by_namespace_.find(NamespaceOf(job_id));
  const auto own = by_job_.find(job_id);
  return (all == by_namespace_.end() ? 0 : all->second) - (own == by_job_.end() ? 0 : own->second);
}

int64_t DevicesLeft(const v1::Namespace* space, int64_t others) {
  if (space == nullptr) return 0;
  if (!space->quota().has_devices()) return kNoDeviceLimit;
  return std::max<int64_t>(0, space->quota().devices() - others);
}

std::string QuotaWaitText(const v1::Namespace* space, std::string_view job_id, int ranks,
                          int64_t others) {
  if (space == nullptr) return fmt::format("the namespace {} does not exist", NamespaceOf(job_id));
  return fmt::format("{} {}; quota.devices of the namespace {} is {}, and its other jobs use {}",
                     CountText(ranks, "rank needs", "ranks need"), CountText(ranks, "device"),
                     space->name(), space->quota().devices(), others);
}

}  // namespace troupe
