// ExternalScaler: KEDA asks here how many devices jobs want, and sizes a pool of workers by it.
#ifndef TROUPE_COORDINATOR_SERVICE_EXTERNAL_SCALER_H_
#define TROUPE_COORDINATOR_SERVICE_EXTERNAL_SCALER_H_

#include <grpcpp/grpcpp.h>

#include "base/status.h"
#include "coordinator/engine/engine.h"
#include "coordinator/service/call_guard.h"
#include "externalscaler/externalscaler.grpc.pb.h"

namespace troupe {

// Returns the value of the trigger's key devicesPerWorker. INVALID_ARGUMENT if it is absent or no
// whole number from 1 on.
StatusOr<int> DevicesPerWorker(const externalscaler::ScaledObjectRef& object);

// Thread-safe. Engine and guard outlive the service and its calls.
class ExternalScalerShell final : public externalscaler::ExternalScaler::CallbackService {
 public:
  ExternalScalerShell(Engine& engine, const CallGuard& guard) : engine_(engine), guard_(guard) {}

  grpc::ServerUnaryReactor* IsActive(grpc::CallbackServerContext* context,
                                     const externalscaler::ScaledObjectRef* request,
                                     externalscaler::IsActiveResponse* response) override;
  // The stream ends when the caller's access ends.
  grpc::ServerWriteReactor<externalscaler::IsActiveResponse>* StreamIsActive(
      grpc::CallbackServerContext* context,
      const externalscaler::ScaledObjectRef* request) override;
  grpc::ServerUnaryReactor* GetMetricSpec(grpc::CallbackServerContext* context,
                                          const externalscaler::ScaledObjectRef* request,
                                          externalscaler::GetMetricSpecResponse* response) override;
  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context,
                                       const externalscaler::GetMetricsRequest* request,
                                       externalscaler::GetMetricsResponse* response) override;

 private:
  Engine& engine_;
  const CallGuard& guard_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_EXTERNAL_SCALER_H_
