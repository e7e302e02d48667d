// Checks every call on a connection with TLS before its handler sees it: who calls
// (AccessControl::Authenticate), and whether that role may (CheckAccess), or whether the call needs
// neither certificate nor token (CheckAnonymousAccess). Refusals are recorded in the audit log.
//
// Reflection is refused where the server is configured so.
//
// Calls without such a connection are not checked: those of this process to itself, and all calls
// of a server without TLS.
#ifndef TROUPE_COORDINATOR_ACCESS_ACCESS_PROCESSOR_H_
#define TROUPE_COORDINATOR_ACCESS_ACCESS_PROCESSOR_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "coordinator/access/access_control.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/access/caller.h"

namespace troupe {

// Whether the peer's connection has TLS.
bool HasTls(const grpc::AuthContext& peer);

// Returns the PEM of the certificate with which the peer made its connection; empty without one.
std::string CertificateOf(const grpc::AuthContext& peer);

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// Returns the values of "authorization".
std::vector<std::string> AuthorizationsOf(const CallMetadata& metadata);

// Returns the name under which a refusal of a call that is not authenticated is recorded: the first
// URI of the peer's certificate; without one that of ClaimedToken.
std::string ClaimedName(const grpc::AuthContext& peer, const CallMetadata& metadata);

// Returns the caller of a call that the peer makes with this metadata, on a connection with TLS.
StatusOr<Caller> AuthenticateCall(const AccessControl& access, const grpc::AuthContext& peer,
                                  const CallMetadata& metadata);

// Thread-safe.
class AccessProcessor final : public grpc::AuthMetadataProcessor {
 public:
  // `access` and `audit` outlive it.
  AccessProcessor(bool reflects, const AccessControl& access, AuditLog& audit)
      : reflects_(reflects), access_(access), audit_(audit) {}

  bool IsBlocking() const override { return false; }

  // UNAUTHENTICATED or PERMISSION_DENIED; gRPC ends the call with this status.
  grpc::Status Process(const InputMetadata& auth_metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed_auth_metadata,
                       OutputMetadata* response_metadata) override;

 private:
  Status CheckCall(std::string_view rpc, const Caller& caller) const;

  const bool reflects_;
  const AccessControl& access_;
  AuditLog& audit_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_ACCESS_PROCESSOR_H_
