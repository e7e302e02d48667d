#include "coordinator/service/call_guard.h"

#include "base/confined/path_root.h"
#include "coordinator/state/path_roots.h"
#include "plan/job/job_name.h"

namespace troupe {

GuardedCall::GuardedCall(const CallGuard& guard, const grpc::CallbackServerContext& context,
                         std::string_view method)
    : rpc(method) {
  const CallAudit& audit = guard.audit();
  caller = PeerName(audit, context);
  const auto found = CallerOf(audit, context);
  if (!found.ok()) {
    access = found.status();
    caller = CallerName(audit, context);
  } else if (found->has_value()) {
    identity = (*found)->identity;
    caller = AuditNameOf(**found);
    // A caller with TLS and without an identity must not pass for one without TLS.
    if (!identity) access = Unauthenticated("{} requires a certificate or a token", rpc);
  }
}

CallGuard::CallGuard(std::shared_ptr<const Namespaces> namespaces, const UserLimits& limits,
                     const CallAudit& audit)
    : audit_(audit),
      streams_({limits.streams, "open streams (watches and reads of logs)", "--most-user-streams"}),
      waiting_plans_({limits.waiting_plans, "plans and checks of data", "--most-user-plans"}),
      namespaces_(std::move(namespaces)) {}

void CallGuard::SetNamespaces(std::shared_ptr<const Namespaces> namespaces) {
  const std::lock_guard lock(mutex_);
  namespaces_ = std::move(namespaces);
}

std::shared_ptr<const Namespaces> CallGuard::namespaces() const {
  const std::lock_guard lock(mutex_);
  return namespaces_;
}

Status CallGuard::Recorded(const GuardedCall& call, Status status) const {
  if (!status.ok()) audit_.log.AppendRefusal(call.caller, call.rpc, std::string(Message(status)));
  return status;
}

Status CallGuard::CheckJob(const GuardedCall& call, const std::string& job) const {
  TROUPE_RETURN_IF_ERROR(Recorded(call, call.access));
  const auto namespaces = this->namespaces();
  if (namespaces == nullptr || !call.identity) return OkStatus();
  return Recorded(call, CheckSees(*namespaces, *call.identity, JobId(job)));
}

template <typename Confined>
Status CallGuard::CheckPathsOf(const GuardedCall& call, const std::string& job,
                               const Confined& confined) const {
  TROUPE_RETURN_IF_ERROR(CheckJob(call, job));
  const auto namespaces = this->namespaces();
  if (namespaces == nullptr) return OkStatus();
  const std::string id = JobId(job);
  TROUPE_RETURN_IF_ERROR(Recorded(call, CheckExists(*namespaces, id)));
  return Recorded(call, CheckPaths(confined, *namespaces->FindOf(id)));
}

Status CallGuard::CheckSpec(const GuardedCall& call, const std::string& job,
                            const v1::JobSpec& spec) const {
  return CheckPathsOf(call, job, spec);
}

Status CallGuard::CheckRebuild(const GuardedCall& call,
                               const v1::RebuildJobRequest& request) const {
  return CheckPathsOf(call, request.job().name(), request);
}

StatusOr<JobFilter> CallGuard::SeenBy(const GuardedCall& call) const {
  TROUPE_RETURN_IF_ERROR(Recorded(call, call.access));
  auto namespaces = this->namespaces();
  if (namespaces == nullptr || !call.identity || call.identity->role == Role::kOperator)
    return JobFilter();
  return JobFilter([namespaces = std::move(namespaces), identity = *call.identity](
                       const std::string& id) { return namespaces->Sees(identity, id); });
}

Status CallGuard::RecordIfRefused(const GuardedCall& call, Status status) const {
  const bool is_refusal = status.code() == StatusCode::kResourceExhausted || LeavesRoot(status);
  return is_refusal ? Recorded(call, std::move(status)) : status;
}

StatusOr<UserTicket> CallGuard::Count(const GuardedCall& call, const UserCounts& counts) const {
  TROUPE_RETURN_IF_ERROR(Recorded(call, call.access));
  auto ticket = counts.Add(call.user());
  if (!ticket.ok()) return RecordIfRefused(call, ticket.status());
  return ticket;
}

StatusOr<UserTicket> CallGuard::OpenStream(const GuardedCall& call) const {
  return Count(call, streams_);
}

StatusOr<UserTicket> CallGuard::AwaitPlan(const GuardedCall& call) const {
  return Count(call, waiting_plans_);
}

}  // namespace troupe
