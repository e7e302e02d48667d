// Checks every call on a connection with TLS before its handler sees it: who calls
// (Authenticate), and whether that role may (CheckAccess), or whether the call needs no certificate
// (CheckAnonymousAccess). Refusals are recorded in the audit log.
//
// Reflection is refused where the server is configured so.
//
// Calls without such a connection are not checked: those of this process to itself, and all calls
// of a server without TLS.
#ifndef TROUPE_COORDINATOR_ACCESS_ACCESS_PROCESSOR_H_
#define TROUPE_COORDINATOR_ACCESS_ACCESS_PROCESSOR_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/security/identity.h"
#include "base/status.h"
#include "coordinator/access/audit_log.h"

namespace troupe {

// Returns the PEM of the certificate with which the peer made its connection; empty without one.
std::string CertificateOf(const grpc::AuthContext& peer);

// Thread-safe.
class AccessProcessor final : public grpc::AuthMetadataProcessor {
 public:
  // `clock` and `audit` outlive it.
  AccessProcessor(std::string cluster, bool reflects, const Clock& clock, AuditLog& audit)
      : cluster_(std::move(cluster)), reflects_(reflects), clock_(clock), audit_(audit) {}

  bool IsBlocking() const override { return false; }

  // UNAUTHENTICATED or PERMISSION_DENIED; gRPC ends the call with this status.
  grpc::Status Process(const InputMetadata& auth_metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed_auth_metadata,
                       OutputMetadata* response_metadata) override;

 private:
  // `name` becomes that of the caller in the audit log.
  Status CheckPeer(std::string_view rpc, const grpc::AuthContext& peer, std::string* name) const;
  Status CheckCall(std::string_view rpc, const Identity& caller) const;

  const std::string cluster_;
  const bool reflects_;
  const Clock& clock_;
  AuditLog& audit_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_ACCESS_PROCESSOR_H_
