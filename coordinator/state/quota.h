// Decides whether a namespace, or a user, may have one more job or device. Pure.
#ifndef TROUPE_COORDINATOR_STATE_QUOTA_H_
#define TROUPE_COORDINATOR_STATE_QUOTA_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/namespace.pb.h"

namespace troupe {

// The time to which quota.submissions_per_minute refers.
inline constexpr Duration kSubmissionTime = std::chrono::minutes(1);

// The present use of a namespace and of a user by their jobs.
struct JobUse {
  int64_t jobs = 0;         // jobs of the namespace that have not ended
  int64_t queued = 0;       // QUEUED jobs of the namespace
  int64_t submissions = 0;  // in the namespace, within kSubmissionTime
  int64_t user_jobs = 0;    // jobs of the user that have not ended
};

// RESOURCE_EXHAUSTED, naming the namespace, the quota and both numbers, if the namespace may not
// have another job now.
Status CheckQuota(const v1::Namespace& space, const JobUse& use);

// RESOURCE_EXHAUSTED, naming the user and both numbers, if `user` may not have another job now.
Status CheckUserJobs(std::string_view user, const JobUse& use, int64_t most);

// INVALID_ARGUMENT, naming field, value and quota, if the namespace may never run the job: a plan
// of `ranks` ranks, each of which uses a device.
Status CheckFits(const v1::Namespace& space, const v1::JobSpec& spec, int ranks);

// The times of the submissions of one namespace.
class SubmissionTimes {
 public:
  int64_t CountAt(MonotonicTime now) const;
  void Add(MonotonicTime now);

 private:
  std::deque<MonotonicTime> times_;
};

inline constexpr int64_t kNoDeviceLimit = std::numeric_limits<int64_t>::max();

// The devices that the ranks of the jobs' present groups hold. Former ranks, which end shortly or
// are on lost workers, do not count.
class DeviceUse {
 public:
  // Counts nothing; for a cluster without namespaces.
  DeviceUse() = default;
  DeviceUse(const Fleet& fleet, const std::map<std::string, Job>& jobs);

  // Returns the number of devices of the other jobs in the namespace of `job_id`.
  int64_t OfOthers(const std::string& job_id) const;

 private:
  std::map<std::string, int64_t, std::less<>> by_namespace_;
  std::map<std::string, int64_t, std::less<>> by_job_;
};

// Returns the number of devices that a job may use if the other jobs of its namespace hold
// `others`. 0 if the namespace does not exist.
int64_t DevicesLeft(const v1::Namespace* space, int64_t others);

// The reason for which a job with `ranks` ranks waits. REQUIRES: ranks > DevicesLeft.
std::string QuotaWaitText(const v1::Namespace* space, std::string_view job_id, int ranks,
                          int64_t others);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_QUOTA_H_
