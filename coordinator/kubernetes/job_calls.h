// The jobs of the coordinator as the controller of TroupeJobs uses them.
#ifndef TROUPE_COORDINATOR_KUBERNETES_JOB_CALLS_H_
#define TROUPE_COORDINATOR_KUBERNETES_JOB_CALLS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "coordinator/kubernetes/reconcile.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Names the job that was created for an object.
struct JobOfObject {
  std::string uid;
  std::string job_name;     // that of spec.job; the namespace in it decides where the uid is known
  int64_t known_step = -1;  // the figures of this step are not read again
};

// The answer to a call.
struct JobOutcome {
  std::string uid;  // that of the object
  Status status;
};

// Used by one thread.
class JobCalls {
 public:
  virtual ~JobCalls() = default;

  // Returns the facts of each job, in the order of `objects`; absent: there was no such job.
  virtual StatusOr<std::vector<std::optional<JobFacts>>> Look(
      const std::vector<JobOfObject>& objects) = 0;

  // Whether another call may begin.
  virtual bool HasRoom() const = 0;
  // Each call returns at once, and its outcome is that of the object. REQUIRES: HasRoom().
  virtual void Create(const std::string& uid, const v1::JobSpec& job) = 0;
  virtual void Cancel(const std::string& uid, const std::string& job, bool checkpoint) = 0;
  virtual void Resume(const std::string& uid, const std::string& job) = 0;
  virtual void Delete(const std::string& uid, const std::string& job) = 0;
  // Returns and forgets the outcomes of calls that have ended since.
  virtual std::vector<JobOutcome> TakeOutcomes() = 0;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_JOB_CALLS_H_
