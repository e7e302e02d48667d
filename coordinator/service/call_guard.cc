#include "coordinator/service/call_guard.h"

#include "coordinator/service/call_audit.h"
#include "coordinator/state/path_roots.h"
#include "plan/job/job_name.h"

namespace troupe {

GuardedCall::GuardedCall(const grpc::CallbackServerContext& context, std::string_view method)
    : caller(CallerName(context)), rpc(method) {
  if (const auto certificate = CallerCertificate(context)) identity = certificate->identity;
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
    audit_->AppendRefusal(call.caller, std::string(call.rpc), std::string(Message(status)));
  return status;
}

Status CallGuard::CheckJob(const GuardedCall& call, const std::string& job) const {
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

JobFilter CallGuard::SeenBy(const GuardedCall& call) const {
  auto namespaces = this->namespaces();
  if (namespaces == nullptr || !call.identity) return {};
  return [namespaces = std::move(namespaces), identity = *call.identity](const std::string& id) {
    return namespaces->Sees(identity, id);
  };
}

}  // namespace troupe
