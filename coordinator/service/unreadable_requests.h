// Gives a call whose request cannot be parsed an error that states so: gRPC ends such a call with
// UNIMPLEMENTED and without a text.
#ifndef TROUPE_COORDINATOR_SERVICE_UNREADABLE_REQUESTS_H_
#define TROUPE_COORDINATOR_SERVICE_UNREADABLE_REQUESTS_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

namespace troupe {

// Returns an interceptor for a server. A call with one request, with or without a stream of
// answers, then ends with INVALID_ARGUMENT.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ExplainUnreadableRequests();

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_UNREADABLE_REQUESTS_H_
