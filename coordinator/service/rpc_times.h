// Measures how long unary calls take: metric::kRpcDuration.
//
// Streams are left out, because they last as long as their clients want, and so are calls that are
// refused before a handler sees them (coordinator/access/access_processor.h).
#ifndef TROUPE_COORDINATOR_SERVICE_RPC_TIMES_H_
#define TROUPE_COORDINATOR_SERVICE_RPC_TIMES_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "base/metrics/metrics.h"

namespace troupe {

// Returns an interceptor for a server; `metrics` outlives it.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MeasureCalls(
    Metrics& metrics);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_RPC_TIMES_H_
