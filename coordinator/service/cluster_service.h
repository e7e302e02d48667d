// ClusterService: the workers, and which of them are drained.
#ifndef TROUPE_COORDINATOR_SERVICE_CLUSTER_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_CLUSTER_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/engine/engine.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/call_guard.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

// Thread-safe. Engine, audit and guard outlive the service and its calls.
class ClusterServiceShell final : public v1::ClusterService::CallbackService {
 public:
  ClusterServiceShell(Engine& engine, const CallAudit& audit, const CallGuard& guard)
      : engine_(engine), audit_(audit), guard_(guard) {}
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse* response) override;
  grpc::ServerUnaryReactor* UndrainWorker(grpc::CallbackServerContext* context,
                                          const v1::UndrainWorkerRequest* request,
                                          v1::UndrainWorkerResponse* response) override;

 private:
  // Records and makes the change `Call`, for operators, who see every job.
  template <typename Call, typename Request, typename Response>
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* context, const char* rpc,
                                   const Request* request, Response* response);

  Engine& engine_;
  const CallAudit& audit_;
  const CallGuard& guard_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CLUSTER_SERVICE_H_
