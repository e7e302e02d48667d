// The facts that the page of the cluster shows.
#ifndef TROUPE_REPORT_LIVE_CLUSTER_PAGE_VIEW_H_
#define TROUPE_REPORT_LIVE_CLUSTER_PAGE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/v1/service.pb.h"

namespace troupe {

struct ClusterPageView {
  std::string caller;  // "viewer/ann"; empty: callers have no identity
  int64_t now_ns = 0;  // nanoseconds since the Unix epoch
  std::string version;
  std::string state_filter, namespace_filter;  // as asked for; empty: none
  std::vector<v1::Job> jobs;  // newest first; without spec and plan; Job.loss may be set
  size_t more_jobs = 0;       // left out of `jobs`
  // False: `jobs`, and what `workers` have of jobs, may leave out jobs that the caller may not see.
  bool sees_all_jobs = true;
  std::string jobs_error;  // the reason why there are none, such as "PERMISSION_DENIED: …"
  std::vector<v1::WorkerStatus> workers;
  size_t more_workers = 0;  // left out of `workers`
  std::string workers_error;
};

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_CLUSTER_PAGE_VIEW_H_
