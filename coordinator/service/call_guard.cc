#include "coordinator/service/call_guard.h"

#include "coordinator/state/path_roots.h"
#include "plan/job/job_name.h"

namespace troupe {

GuardedCall::GuardedCall(const CallGuard* guard, const grpc::CallbackServerContext& context,
                         std::string_view method)
    : caller(context.peer()), rpc(method) {
  const auto found = CallerOf(guard == nullptr ? nullptr : guard->audit(), context);
  if (!found.ok()) {
    access = found.status();
  } else if (found->has_value()) {
    identity = (*found)->identity;
    caller = AuditNameOf(**found);
    // A caller with TLS and without an identity must not pass for one without TLS.
    if (!identity) access = Unauthenticated("{} requires a certificate or a token", rpc);
  }
}

void CallGuard::SetNamespaces(std::shared_ptr<const Namespaces> namespaces) {
  const std::lock_guard lock(mutex_);
  namespaces_ = std::move(namespaces);
}

std::shared_ptr<const Namespaces> CallGuard::namespaces() const {
  const std::lock_guard lock(mutex_);
  return namespaces_;
}

Status CallGuard::Recorded(const GuardedCall& call, Status status) const {
  if (!status.ok() && audit_ != nullptr)
    audit_->log.AppendRefusal(call.caller, std::string(call.rpc), std::string(Message(status)));
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

StatusOr<StreamTicket> CallGuard::OpenStream(const GuardedCall& call) {
  TROUPE_RETURN_IF_ERROR(Recorded(call, call.access));
  return streams_.Add(call.user());
}

}  // namespace troupe
