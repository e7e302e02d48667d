// The API's read-only views of the coordinator's state. Pure.
//
// Lists are paged: `page_size` 0 means 100, more than 1,000 means 1,000; a page token is the one
// that the previous response returned, else INVALID_ARGUMENT.
#ifndef TROUPE_COORDINATOR_MACHINE_VIEWS_H_
#define TROUPE_COORDINATOR_MACHINE_VIEWS_H_

#include <functional>
#include <string>

#include "base/status.h"
#include "coordinator/machine/coordinator_state.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

Status ViewJob(const CoordinatorState& state, const v1::GetJobRequest& request,
               v1::GetJobResponse* response);
Status ViewReceipt(const CoordinatorState& state, const v1::GetJobReceiptRequest& request,
                   v1::GetJobReceiptResponse* response);
// Whether the caller may see the job with this id. Empty: every job.
using JobFilter = std::function<bool(const std::string& id)>;
// The jobs that the request selects and `sees` accepts, in the order that it asks for.
// INVALID_ARGUMENT if it names a state that does not exist.
Status ViewJobs(const CoordinatorState& state, const v1::ListJobsRequest& request,
                const JobFilter& sees, v1::ListJobsResponse* response);
Status ViewCheckpoints(const CoordinatorState& state, const v1::ListCheckpointsRequest& request,
                       v1::ListCheckpointsResponse* response);
Status ViewCheckpoint(const CoordinatorState& state, const v1::GetCheckpointRequest& request,
                      v1::GetCheckpointResponse* response);
// The worker, with those of its jobs that `sees` accepts.
v1::WorkerStatus DescribeWorker(const CoordinatorState& state, const Worker& worker,
                                const JobFilter& sees);
// The workers, ordered by name, each with those of their jobs that `sees` accepts.
Status ViewWorkers(const CoordinatorState& state, const v1::ListWorkersRequest& request,
                   const JobFilter& sees, v1::ListWorkersResponse* response);

// The part of the state that a plan on this cluster needs.
struct PlanInputs {
  Planner planner;
  v1::JobSpec spec;  // defaults applied
  ClusterView cluster;
};
PlanInputs ViewPlanInputs(const CoordinatorState& state, const v1::PlanJobRequest& request);
// Makes a plan for the job, placed on the cluster's devices if they suffice, else without
// placement. May take long.
StatusOr<v1::Plan> PlanOn(const PlanInputs& inputs);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_VIEWS_H_
