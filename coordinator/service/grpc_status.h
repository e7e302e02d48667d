// The only place that converts our Status to gRPC's.
#ifndef TROUPE_COORDINATOR_SERVICE_GRPC_STATUS_H_
#define TROUPE_COORDINATOR_SERVICE_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "base/status.h"

namespace troupe {

// Returns the same code, and the message as PrintableLine shows it; that of violations, which are
// shown already, keeps a line for each. Payloads (BadRequest with the bad fields) go into a
// google.rpc.Status in grpc-status-details-bin. A status that exceeds what HTTP/2 peers accept in
// trailers is truncated and states how much is missing.
grpc::Status ToGrpcStatus(const Status& status);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_GRPC_STATUS_H_
