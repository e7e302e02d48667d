#include "coordinator/service/call_audit.h"

#include <limits>
#include <utility>

#include "base/security/certificate.h"
#include "coordinator/access/access_processor.h"

namespace troupe {
namespace {

// The caller of a call without a connection.
enum class Inside { kNobody, kCoordinator, kViewer };

// Recognises the calls of this process by the secret, which nobody else knows.
Inside InsideOf(const CallAudit& audit, const grpc::CallbackServerContext& context) {
  if (audit.internal == nullptr) return Inside::kNobody;
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer != nullptr && HasTls(*peer)) return Inside::kNobody;
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kInternalCallerKey);
  if (found == metadata.end() || found->second != audit.internal->secret) return Inside::kNobody;
  return metadata.contains(kViewerKey) ? Inside::kViewer : Inside::kCoordinator;
}

// Returns the certificate of a viewer, in PEM; empty if it has none.
std::string CertificateOfViewer(const CallMetadata& metadata) {
  const auto found = metadata.find(kViewerCertificateKey);
  if (found == metadata.end()) return "";
  return {found->second.data(), found->second.size()};
}

// Returns the name of a viewer who is not authenticated, as ClaimedName does.
std::string ClaimedViewer(const CallMetadata& metadata) {
  const auto certificate = ReadCertificate(CertificateOfViewer(metadata));
  return certificate.ok() ? ToUri(certificate->identity) : ClaimedToken(AuthorizationsOf(metadata));
}

}  // namespace

StatusOr<std::optional<Caller>> CallerOf(const CallAudit& audit,
                                         const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer != nullptr && HasTls(*peer)) {
    TROUPE_ASSIGN_OR_RETURN(Caller caller,
                            AuthenticateCall(audit.access, *peer, context.client_metadata()));
    return std::optional<Caller>(std::move(caller));
  }
  const Inside inside = InsideOf(audit, context);
  if (inside == Inside::kNobody || audit.access.cluster().empty()) return std::nullopt;
  if (inside == Inside::kCoordinator) {
    return std::optional<Caller>(Caller{.identity = audit.internal->identity,
                                        .expires = std::numeric_limits<int64_t>::max()});
  }
  const CallMetadata& metadata = context.client_metadata();
  TROUPE_ASSIGN_OR_RETURN(Caller viewer, audit.access.Authenticate(CertificateOfViewer(metadata),
                                                                   AuthorizationsOf(metadata)));
  return std::optional<Caller>(std::move(viewer));
}

std::string PeerName(const CallAudit& audit, const grpc::CallbackServerContext& context) {
  switch (InsideOf(audit, context)) {
    case Inside::kCoordinator:
      return "submitters/" + audit.internal->identity.name;
    case Inside::kViewer:
      return "page";
    case Inside::kNobody:
      break;
  }
  return context.peer();
}

std::string CallerName(const CallAudit& audit, const grpc::CallbackServerContext& context) {
  const auto caller = CallerOf(audit, context);
  if (caller.ok() && caller->has_value() && (*caller)->identity) return AuditNameOf(**caller);
  // One whose access has ended since its call began is known by its certificate or token.
  std::string claimed;
  if (!caller.ok()) {
    claimed = InsideOf(audit, context) == Inside::kViewer
                  ? ClaimedViewer(context.client_metadata())
                  : ClaimedName(*context.auth_context(), context.client_metadata());
  }
  return claimed.empty() ? PeerName(audit, context) : claimed;
}

Status RecordChange(const CallAudit& audit, const grpc::CallbackServerContext& context,
                    std::string_view rpc, const std::string& target) {
  TROUPE_RETURN_IF_ERROR(CallerOf(audit, context).status());
  return Annotate(audit.log.Append({.identity = CallerName(audit, context),
                                    .rpc = std::string(rpc),
                                    .outcome = AuditOutcome::kAllowed,
                                    .target = target}),
                  "the call cannot be recorded");
}

void RecordRefusedPath(const CallAudit& audit, const RefusedPath& path) {
  const std::string& cluster = audit.access.cluster();
  audit.log.AppendRefusal(
      cluster.empty() ? "workers/" + path.worker : ToUri({cluster, Role::kWorker, path.worker}),
      kSessionRpc, path.reason, "jobs/" + path.job);
}

StatusOr<std::unique_ptr<StreamGuard>> GuardStream(const CallAudit& audit,
                                                   const grpc::CallbackServerContext& context,
                                                   std::string_view rpc,
                                                   std::function<void(const Status&)> end) {
  TROUPE_ASSIGN_OR_RETURN(std::optional<Caller> caller, CallerOf(audit, context));
  if (!caller) return nullptr;
  return audit.access.Guard({*std::move(caller), std::string(rpc), std::move(end)});
}

}  // namespace troupe
