#include "coordinator/kubernetes/kubernetes_jobs.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

// Returns the name of the pod, where this is one.
std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

CoordinatorJobsOptions KubernetesJobs::WithWake(CoordinatorJobsOptions jobs,
                                                const std::shared_ptr<ApiClient>& api) {
  jobs.wake = [api] { api->Wake(); };
  return jobs;
}

KubernetesJobs::KubernetesJobs(const KubernetesOptions& options, CoordinatorJobsOptions jobs,
                               const Clock& clock)
    : api_(std::make_shared<ApiClient>(ApiClientOptions{options.url, options.directory}, clock)),
      jobs_(WithWake(std::move(jobs), api_)),
      controller_({.space = options.space, .instance = HostName()}, *api_, jobs_, clock) {
  LogInfo("kubernetes", "reconciles the TroupeJobs of namespace {} at {}", options.space,
          options.url);
  thread_ = std::thread([this] {
    while (!stops_) controller_.Turn();
  });
}

KubernetesJobs::~KubernetesJobs() {
  stops_ = true;
  api_->Stop();
  thread_.join();
}

}  // namespace troupe
