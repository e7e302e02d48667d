// The public API (JobService, PlanService, CheckpointService, ClusterService). It translates
// requests into events or reads of the engine and makes no decisions itself.
#ifndef TROUPE_COORDINATOR_SERVICE_API_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_API_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "base/limited_calls.h"
#include "base/serial_executor.h"
#include "coordinator/service/engine.h"
#include "coordinator/service/plan_desk.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// All services are thread-safe. `engine` must outlive them and their calls.
class JobServiceShell final : public v1::JobService::CallbackService {
 public:
  // Plans on `plans` and checks job data on `data_checks`; both must outlive the engine's last
  // callback.
  JobServiceShell(Engine& engine, PlanDesk& plans, SerialExecutor& data_checks)
      : engine_(engine), plans_(plans), data_checks_(data_checks) {}

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
  PlanDesk& plans_;
  SerialExecutor& data_checks_;
  // Limits each data check, so that a hanging mount delays later checks only until its limit.
  LimitedCalls limited_looks_{64};
};

class PlanServiceShell final : public v1::PlanService::CallbackService {
 public:
  // Plans on `plans`, which must outlive the engine's last callback.
  PlanServiceShell(Engine& engine, PlanDesk& plans) : engine_(engine), plans_(plans) {}
  grpc::ServerUnaryReactor* PlanJob(grpc::CallbackServerContext* context,
                                    const v1::PlanJobRequest* request,
                                    v1::PlanJobResponse* response) override;

 private:
  Engine& engine_;
  PlanDesk& plans_;
};

class CheckpointServiceShell final : public v1::CheckpointService::CallbackService {
 public:
  // Plans on `plans`, which must outlive the engine's last callback.
  CheckpointServiceShell(Engine& engine, PlanDesk& plans) : engine_(engine), plans_(plans) {}
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
  PlanDesk& plans_;
};

class ClusterServiceShell final : public v1::ClusterService::CallbackService {
 public:
  explicit ClusterServiceShell(Engine& engine) : engine_(engine) {}
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;

 private:
  Engine& engine_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_API_SERVICE_H_
