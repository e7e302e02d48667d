// Marks every answer of a coordinator that runs with --insecure.
#ifndef TROUPE_COORDINATOR_SERVICE_INSECURE_NOTICE_H_
#define TROUPE_COORDINATOR_SERVICE_INSECURE_NOTICE_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

namespace troupe {

// Returns an interceptor for a server, whose answers then have kInsecureHeader
// (base/security/insecure_reminder.h) among their initial metadata.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MarkAnswersInsecure();

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_INSECURE_NOTICE_H_
