#include "coordinator/service/call_audit.h"

#include "base/security/identity.h"
#include "coordinator/access/access_processor.h"

namespace troupe {

std::optional<CertificateFacts> CallerCertificate(const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  const std::string certificate = peer == nullptr ? std::string() : CertificateOf(*peer);
  if (certificate.empty()) return std::nullopt;
  // The processor of the connection's credentials has accepted the certificate.
  auto facts = ReadCertificate(certificate);
  if (!facts.ok()) return std::nullopt;
  return *std::move(facts);
}

std::string CallerName(const grpc::CallbackServerContext& context) {
  const std::optional<CertificateFacts> certificate = CallerCertificate(context);
  return certificate ? ToUri(certificate->identity) : context.peer();
}

Status RecordChange(AuditLog* audit, const grpc::CallbackServerContext& context,
                    std::string_view rpc, const std::string& target) {
  if (audit == nullptr) return OkStatus();
  return Annotate(audit->Append({.identity = CallerName(context),
                                 .rpc = std::string(rpc),
                                 .outcome = AuditOutcome::kAllowed,
                                 .target = target}),
                  "the call cannot be recorded");
}

}  // namespace troupe
