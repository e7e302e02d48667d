// The public API (JobService, PlanService, CheckpointService, ClusterService). It translates
// requests into events or reads of the engine and makes no decisions itself.
#ifndef TROUPE_COORDINATOR_SERVICE_API_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_API_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <utility>

#include "actor/work_pool.h"
#include "base/limited_calls.h"
#include "base/store/store.h"
#include "coordinator/engine/engine.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/call_guard.h"
#include "coordinator/service/data_check.h"
#include "coordinator/service/service_pools.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// All services are thread-safe. `engine`, `store`, `audit` and `guard` must outlive them and their
// calls. Calls that change something are recorded in `audit`.
class JobServiceShell final : public v1::JobService::CallbackService {
 public:
  // `check_files` is called for each new job, on a thread on which it may block.
  JobServiceShell(Engine& engine, const Store& store, ServicePools pools, CheckFiles check_files,
                  const CallAudit& audit, const CallGuard& guard)
      : engine_(engine),
        store_(store),
        pools_(std::move(pools)),
        check_files_(std::move(check_files)),
        audit_(audit),
        guard_(guard) {}

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest* request,
                                      v1::CreateJobResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchJobResponse>* WatchJob(
      grpc::CallbackServerContext* context, const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override;
  grpc::ServerUnaryReactor* DeleteJob(grpc::CallbackServerContext* context,
                                      const v1::DeleteJobRequest* request,
                                      v1::DeleteJobResponse* response) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request,
                                      v1::ResumeJobResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadJobLogsResponse>* ReadJobLogs(
      grpc::CallbackServerContext* context, const v1::ReadJobLogsRequest* request) override;
  grpc::ServerUnaryReactor* GetJobReceipt(grpc::CallbackServerContext* context,
                                          const v1::GetJobReceiptRequest* request,
                                          v1::GetJobReceiptResponse* response) override;
  grpc::ServerUnaryReactor* TraceJob(grpc::CallbackServerContext* context,
                                     const v1::TraceJobRequest* request,
                                     v1::TraceJobResponse* response) override;

 private:
  Engine& engine_;
  const Store& store_;
  const ServicePools pools_;
  const CheckFiles check_files_;
  const CallAudit& audit_;
  const CallGuard& guard_;
  // Limits each data check, so that a hanging mount delays later checks only until its limit.
  LimitedCalls limited_looks_{64};
};

class PlanServiceShell final : public v1::PlanService::CallbackService {
 public:
  PlanServiceShell(Engine& engine, WorkPool plans, const CallGuard& guard)
      : engine_(engine), plans_(std::move(plans)), guard_(guard) {}
  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* context,
                                    const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override;

 private:
  Engine& engine_;
  const WorkPool plans_;
  const CallGuard& guard_;
};

class CheckpointServiceShell final : public v1::CheckpointService::CallbackService {
 public:
  CheckpointServiceShell(Engine& engine, WorkPool plans, const CallAudit& audit,
                         const CallGuard& guard)
      : engine_(engine), plans_(std::move(plans)), audit_(audit), guard_(guard) {}
  grpc::ServerUnaryReactor* ListCheckpoints(grpc::CallbackServerContext* context,
                                            const v1::ListCheckpointsRequest* request,
                                            v1::ListCheckpointsResponse* response) override;
  grpc::ServerUnaryReactor* GetCheckpoint(grpc::CallbackServerContext* context,
                                          const v1::GetCheckpointRequest* request,
                                          v1::GetCheckpointResponse* response) override;
  grpc::ServerUnaryReactor* CreateCheckpoint(grpc::CallbackServerContext* context,
                                             const v1::CreateCheckpointRequest* request,
                                             v1::CreateCheckpointResponse* response) override;
  grpc::ServerUnaryReactor* PinCheckpoint(grpc::CallbackServerContext* context,
                                          const v1::PinCheckpointRequest* request,
                                          v1::PinCheckpointResponse* response) override;
  grpc::ServerUnaryReactor* LiftQuarantine(grpc::CallbackServerContext* context,
                                           const v1::LiftQuarantineRequest* request,
                                           v1::LiftQuarantineResponse* response) override;
  grpc::ServerUnaryReactor* RebuildJob(grpc::CallbackServerContext* context,
                                       const v1::RebuildJobRequest* request,
                                       v1::RebuildJobResponse* response) override;

 private:
  Engine& engine_;
  const WorkPool plans_;
  const CallAudit& audit_;
  const CallGuard& guard_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_API_SERVICE_H_
