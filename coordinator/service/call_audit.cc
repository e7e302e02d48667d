#include "coordinator/service/call_audit.h"

#include <utility>

#include "coordinator/access/access_processor.h"

namespace troupe {

StatusOr<std::optional<Caller>> CallerOf(const CallAudit* audit,
                                         const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (audit == nullptr || peer == nullptr || !HasTls(*peer)) return std::nullopt;
  TROUPE_ASSIGN_OR_RETURN(Caller caller,
                          AuthenticateCall(audit->access, *peer, context.client_metadata()));
  return std::optional<Caller>(std::move(caller));
}

std::string CallerName(const CallAudit* audit, const grpc::CallbackServerContext& context) {
  const auto caller = CallerOf(audit, context);
  if (caller.ok() && caller->has_value() && (*caller)->identity) return AuditNameOf(**caller);
  // One whose access has ended since its call began is known by its certificate.
  std::string claimed = caller.ok() ? "" : ClaimedName(*context.auth_context());
  return claimed.empty() ? context.peer() : claimed;
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

StatusOr<std::unique_ptr<StreamGuard>> GuardStream(const CallAudit* audit,
                                                   const grpc::CallbackServerContext& context,
                                                   std::string_view rpc,
                                                   std::function<void(const Status&)> end) {
  TROUPE_ASSIGN_OR_RETURN(std::optional<Caller> caller, CallerOf(audit, context));
  if (!caller) return nullptr;
  return audit->access.Guard({*std::move(caller), std::string(rpc), std::move(end)});
}

}  // namespace troupe
