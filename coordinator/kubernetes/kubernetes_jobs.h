// The thread on which the coordinator reconciles TroupeJobs. It waits for the API server of
// Kubernetes and for calls of this coordinator, and blocks nobody else: what it wants of jobs it
// asks the services for, as a user does.
#ifndef TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_JOBS_H_
#define TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_JOBS_H_

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "coordinator/kubernetes/api_client.h"
#include "coordinator/kubernetes/controller.h"
#include "coordinator/kubernetes/coordinator_jobs.h"
#include "coordinator/kubernetes/kubernetes_options.h"

namespace troupe {

// The name of the internal caller, a submitter.
inline constexpr char kKubernetesCaller[] = "kubernetes";

class KubernetesJobs {
 public:
  // The thread runs until the destructor, which ends the requests in flight. REQUIRES: the options
  // are complete; `jobs.wake` is empty. `clock` outlives the object. Events name this host.
  KubernetesJobs(const KubernetesOptions& options, CoordinatorJobsOptions jobs, const Clock& clock);
  ~KubernetesJobs();
  KubernetesJobs(const KubernetesJobs&) = delete;
  KubernetesJobs& operator=(const KubernetesJobs&) = delete;

 private:
  static CoordinatorJobsOptions WithWake(CoordinatorJobsOptions jobs,
                                         const std::shared_ptr<ApiClient>& api);

  std::atomic<bool> stops_ = false;
  const std::shared_ptr<ApiClient> api_;  // calls that end after this object wake it too
  CoordinatorJobs jobs_;
  Controller controller_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_KUBERNETES_JOBS_H_
