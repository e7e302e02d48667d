#include "coordinator/service/call_audit.h"

#include <limits>
#include <utility>

#include "coordinator/access/access_processor.h"

namespace troupe {
namespace {

// Whether the call is one of the internal caller. Nobody else knows the secret.
bool IsInternal(const CallAudit* audit, const grpc::CallbackServerContext& context) {
  if (audit == nullptr || audit->internal == nullptr) return false;
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kInternalCallerKey);
  return found != metadata.end() && found->second == audit->internal->secret;
}

}  // namespace

StatusOr<std::optional<Caller>> CallerOf(const CallAudit* audit,
                                         const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (audit == nullptr) return std::nullopt;
  if (peer == nullptr || !HasTls(*peer)) {
    if (!IsInternal(audit, context) || audit->internal->identity.cluster.empty())
      return std::nullopt;
    return std::optional<Caller>(Caller{.identity = audit->internal->identity,
                                        .expires = std::numeric_limits<int64_t>::max()});
  }
  TROUPE_ASSIGN_OR_RETURN(Caller caller,
                          AuthenticateCall(audit->access, *peer, context.client_metadata()));
  return std::optional<Caller>(std::move(caller));
}

std::string PeerName(const CallAudit* audit, const grpc::CallbackServerContext& context) {
  return IsInternal(audit, context) ? "submitters/" + audit->internal->identity.name
                                    : context.peer();
}

std::string CallerName(const CallAudit* audit, const grpc::CallbackServerContext& context) {
  const auto caller = CallerOf(audit, context);
  if (caller.ok() && caller->has_value() && (*caller)->identity) return AuditNameOf(**caller);
  // One whose access has ended since its call began is known by its certificate or token.
  std::string claimed =
      caller.ok() ? "" : ClaimedName(*context.auth_context(), context.client_metadata());
  return claimed.empty() ? PeerName(audit, context) : claimed;
}

Status RecordChange(const CallAudit* audit, const grpc::CallbackServerContext& context,
                    std::string_view rpc, const std::string& target) {
  if (audit == nullptr) return OkStatus();
  TROUPE_RETURN_IF_ERROR(CallerOf(audit, context).status());
  return Annotate(audit->log.Append({.identity = CallerName(audit, context),
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

StatusOr<std::unique_ptr<StreamGuard>> GuardStream(const CallAudit* audit,
                                                   const grpc::CallbackServerContext& context,
                                                   std::string_view rpc,
                                                   std::function<void(const Status&)> end) {
  TROUPE_ASSIGN_OR_RETURN(std::optional<Caller> caller, CallerOf(audit, context));
  if (!caller) return nullptr;
  return audit->access.Guard({*std::move(caller), std::string(rpc), std::move(end)});
}

}  // namespace troupe
