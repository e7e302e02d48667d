// Marks every answer of a coordinator that runs with --insecure.
#ifndef TROUPE_COORDINATOR_SERVICE_INSECURE_NOTICE_H_
#define TROUPE_COORDINATOR_SERVICE_INSECURE_NOTICE_H_

#include <grpcpp/grpcpp.h>

namespace troupe {

// From now on, the answers of the server that `builder` makes have kInsecureHeader
// (base/security/insecure_reminder.h) among their initial metadata. REQUIRES: `builder` has no
// interceptors yet.
void MarkAnswersInsecure(grpc::ServerBuilder* builder);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_INSECURE_NOTICE_H_
