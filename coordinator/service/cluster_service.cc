#include "coordinator/service/cluster_service.h"

#include <string>
#include <utility>
#include <variant>

#include "coordinator/machine/views.h"
#include "coordinator/service/call_reactor.h"
#include "coordinator/service/request_bytes.h"

namespace troupe {

grpc::ServerUnaryReactor* ClusterServiceShell::ListWorkers(grpc::CallbackServerContext* context,
                                                           const v1::ListWorkersRequest* request,
                                                           v1::ListWorkersResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  constexpr char kRpc[] = "/troupe.v1.ClusterService/ListWorkers";
  const StatusOr<JobFilter> sees = guard_.SeenBy(GuardedCall(guard_, *context, kRpc));
  Status admitted = sees.status();
  if (admitted.ok()) admitted = CheckRequestBytes(*request);
  if (!admitted.ok()) {
    reactor->FinishWith(admitted);
    return reactor;
  }
  reactor->Query([request, response, sees = *sees](const CoordinatorState& state) {
    return ViewWorkers(state, *request, sees, response);
  });
  return reactor;
}

template <typename Call, typename Request, typename Response>
grpc::ServerUnaryReactor* ClusterServiceShell::Change(grpc::CallbackServerContext* context,
                                                      const char* rpc, const Request* request,
                                                      Response* response) {
  auto* const reactor = new CallReactor(engine_);
  Status admitted = CheckRequestBytes(*request);
  if (admitted.ok())
    admitted = RecordChange(audit_, *context, rpc, fmt::format("workers/{}", request->name()));
  if (!admitted.ok()) {
    reactor->FinishWith(admitted);
    return reactor;
  }
  reactor->Call(
      [request](CallId call) {
        return decltype(Event::what)(Call{call, *request});
      },
      [response](Reply& reply) {
        *response->mutable_worker() = std::move(std::get<v1::WorkerStatus>(reply.value));
        return OkStatus();
      });
  return reactor;
}

grpc::ServerUnaryReactor* ClusterServiceShell::DrainWorker(grpc::CallbackServerContext* context,
                                                           const v1::DrainWorkerRequest* request,
                                                           v1::DrainWorkerResponse* response) {
  return Change<DrainWorkerCall>(context, "/troupe.v1.ClusterService/DrainWorker", request,
                                 response);
}

grpc::ServerUnaryReactor* ClusterServiceShell::UndrainWorker(
    grpc::CallbackServerContext* context, const v1::UndrainWorkerRequest* request,
    v1::UndrainWorkerResponse* response) {
  return Change<UndrainWorkerCall>(context, "/troupe.v1.ClusterService/UndrainWorker", request,
                                   response);
}

}  // namespace troupe
