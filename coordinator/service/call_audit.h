// The callers of the handlers, and the records of what they change.
#ifndef TROUPE_COORDINATOR_SERVICE_CALL_AUDIT_H_
#define TROUPE_COORDINATOR_SERVICE_CALL_AUDIT_H_

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/security/certificate.h"
#include "base/status.h"
#include "coordinator/access/audit_log.h"

namespace troupe {

// Returns the caller's certificate; absent on a connection without TLS.
std::optional<CertificateFacts> CallerCertificate(const grpc::CallbackServerContext& context);

// Returns the caller as audit records name it: the URI of its identity, else its address.
std::string CallerName(const grpc::CallbackServerContext& context);

// Records a call of `rpc` before it is executed. A call that cannot be recorded must not be
// executed. A null `audit` records nothing.
Status RecordChange(AuditLog* audit, const grpc::CallbackServerContext& context,
                    std::string_view rpc, const std::string& target);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CALL_AUDIT_H_
